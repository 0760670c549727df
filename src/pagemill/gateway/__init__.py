"""The HTTP service: documents in, jobs and Markdown out; the OpenAI and Mistral shapes beside it."""
