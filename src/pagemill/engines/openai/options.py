"""Options of the engine for OpenAI-compatible servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from pagemill.domain.errors import ConfigurationError

_USERINFO = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*://)?[^/?#]*@")
_STRICT = ConfigDict(extra="forbid", frozen=True)


class SizeClass(BaseModel):
    """Pages of similar cost, which share connections and a part of the window.

    A page belongs to the first class whose bounds hold it; the last class takes the rest.
    """

    model_config = _STRICT

    name: str = Field(description="Name in metrics and logs.")
    max_long_side: int | None = Field(None, ge=1, description="Most pixels on the long side; nothing for no bound.")
    max_image_tokens: int | None = Field(None, ge=1, description="Most image tokens; nothing for no bound.")
    share: float = Field(gt=0, le=1, description="Part of the window that is kept for this class when others wait.")


class LanguageRoute(BaseModel):
    """Where pages in some languages go."""

    model_config = _STRICT

    languages: tuple[str, ...] = Field(description="Language codes such as zh, ja.")
    endpoint: str = Field(description="Base URL of one of the endpoints.")


DEFAULT_CLASSES = (
    SizeClass(name="small", max_long_side=1499, share=0.25),
    SizeClass(name="medium", max_long_side=2500, share=0.5),
    SizeClass(name="large", share=0.25),
)


class WindowOptions(BaseModel):
    """How many pages are in flight at an endpoint: found by measuring, within these bounds."""

    model_config = _STRICT

    initial: int = Field(8, ge=1, description="Pages in flight to begin with.")
    least: int = Field(1, ge=1, description="Never fewer.")
    most: int = Field(512, ge=1, description="Never more.")
    fixed: bool = Field(default=False, description="Stay at `initial`; for comparisons.")


class OpenAIOptions(BaseModel):
    """Options of the engine for OpenAI-compatible servers; unknown ones are refused."""

    model_config = _STRICT

    endpoints: tuple[str, ...] = Field(min_length=1, description="Base URLs, e.g. http://127.0.0.1:8000/v1.")
    model: str | None = Field(None, description="Name of the served model; nothing: the only one that is served.")
    api_key: SecretStr | None = Field(None, description="Sent as a bearer token.")
    window: WindowOptions = WindowOptions()
    classes: tuple[SizeClass, ...] = Field(DEFAULT_CLASSES, min_length=1, description="Size classes, in order.")
    routes: tuple[LanguageRoute, ...] = Field((), description="Endpoints for languages.")
    languages: tuple[str, ...] = Field((), description="Languages of all pages, where known; routes go by them.")
    repetition_detection: Literal["auto", "on", "off"] = Field(
        "auto", description="Whether the server is asked to stop loops of tokens; auto: where it is known to."
    )
    connect_timeout_s: float = Field(10.0, gt=0, description="Seconds for a connection.")
    first_token_timeout_s: float = Field(300.0, gt=0, description="Seconds until a page's first token.")
    stall_timeout_s: float = Field(60.0, gt=0, description="Seconds between two tokens.")
    transport_attempts: int = Field(5, ge=1, description="Tries of one page when servers fail.")
    outage_timeout_s: float = Field(
        300.0, ge=0, description="Seconds that pages wait while no endpoint answers, or all are full, before they fail."
    )

    @field_validator("endpoints")
    @classmethod
    def _clean_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(clean_base_url(url) for url in urls)

    @model_validator(mode="after")
    def _routes_lead_to_endpoints(self) -> OpenAIOptions:
        for route in self.routes:
            url = without_userinfo(clean_base_url(route.endpoint))
            if url not in map(without_userinfo, self.endpoints):
                raise ValueError(f"the route of {', '.join(route.languages)} leads to {url}, no endpoint")
        if sum(size_class.share for size_class in self.classes) > 1.0 + 1e-9:
            raise ValueError("the shares of the size classes add up to more than 1")
        return self


def clean_base_url(url: str) -> str:
    """A base URL with scheme, ending in /v1 where it had no path.

    Raises:
        ValueError: It is no http or https URL.
    """
    text = url.strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'{without_userinfo(url)}' is no http or https URL")
    return text if parts.path else f"{text}/v1"


def without_userinfo(url: str) -> str:
    """A URL, with a scheme or without, as it may be shown: without user and password."""
    return _USERINFO.sub(r"\1", url.strip())


def parse_options(options: Mapping[str, Any]) -> OpenAIOptions:
    """Checks options.

    Raises:
        ConfigurationError: An option is missing, unknown or out of range.
    """
    try:
        return OpenAIOptions.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "options"
        raise ConfigurationError(
            f"Options of the engine 'openai': {name}: {first['msg']}.",
            f"Its options are: {', '.join(OpenAIOptions.model_fields)}.",
        ) from error
