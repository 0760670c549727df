"""The OpenAI API: chat completions, passed on to the engine's servers, and models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import JSONResponse

from pagemill.domain.errors import NotSupportedError, RequestError
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.errors import error_response, error_responses
from pagemill.gateway.passthrough import ChatAnswer, ChatProxy, served_model
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.jobs.gate import Claimant

router = APIRouter(tags=["openai"])

_CHAT_REQUEST = {
    "type": "object",
    "description": "As of the OpenAI API; fields that are not named here go on to the server as they are.",
    "required": ["messages"],
    "properties": {
        "model": {
            "type": "string",
            "description": "The served model; it may be left out, or be `default`.",
            "examples": ["default"],
        },
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object"},
            "description": "Images as data: URLs; http(s) URLs only where the service allows them.",
        },
        "stream": {"type": "boolean", "default": False},
    },
    "additionalProperties": True,
}
_ANSWERS = {
    "description": "The server's answer, or its events where `stream` is true.",
    "content": {
        "application/json": {"schema": {"type": "object"}},
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def chat_proxy(services: Services) -> ChatProxy | None:
    """What passes chat requests on; None where the engine has no servers."""
    engine = services.engine
    return ChatProxy(services, engine) if isinstance(engine, OpenAIEngine) else None


def model_name(services: Services) -> str:
    """Name of the service's model."""
    engine = services.engine
    return engine.model if isinstance(engine, OpenAIEngine) else f"pagemill-{engine.name}"


async def _proxy_of(request: Request, services: ServicesDependency) -> ChatProxy:
    proxy: ChatProxy | None = request.app.state.chat
    if proxy is None:
        raise NotSupportedError(
            f"The engine '{services.engine.name}' has no chat API.",
            "Send documents to /v1/ocr or /v1/documents, or run the service with the engine 'openai'.",
        )
    return proxy


@router.post(
    "/v1/chat/completions",
    operation_id="createChatCompletion",
    response_class=Response,
    responses={**error_responses(400, 415, 501, 502, 504), 200: _ANSWERS},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _CHAT_REQUEST}}}},
)
async def chat_completions(caller: CallerDependency, proxy: Annotated[ChatProxy, Depends(_proxy_of)]) -> Response:
    """Passes a request on to the engine's servers, in its turn, and their answer back as it comes."""
    return ChatAnswer(proxy, Claimant(caller.key_id))


@router.get("/v1/models", operation_id="listModels", responses=error_responses(502))
async def list_models(services: ServicesDependency, caller: CallerDependency) -> dict[str, Any]:
    """The models that are served."""
    del caller
    return {"object": "list", "data": await _models(services)}


@router.get(
    "/v1/models/{model:path}",
    operation_id="getModel",
    response_class=JSONResponse,
    responses={
        **error_responses(502),
        200: {"description": "The model.", "content": {"application/json": {"schema": {"type": "object"}}}},
    },
)
async def get_model(
    model: Annotated[str, Path(max_length=500)], services: ServicesDependency, caller: CallerDependency
) -> JSONResponse:
    """One model."""
    del caller
    found = next((one for one in await _models(services) if one["id"] == model), None)
    if found is None:
        return error_response(RequestError("There is no such model.", "See /v1/models.", param="model"), status=404)
    return JSONResponse(found)


async def _models(services: Services) -> list[dict[str, Any]]:
    engine = services.engine
    told = await engine.models() if isinstance(engine, OpenAIEngine) else [{"id": model_name(services)}]
    return [served_model(one) for one in told]
