"""The generated set: pages whose every character is known, because we wrote them."""
