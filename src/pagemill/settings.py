"""All settings, built once at the entry point from defaults, a TOML file, the environment and the command line.

Nothing below this layer reads settings: each package has options of its own, which stand here under its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pagemill.conversion import ConversionOptions
from pagemill.documents import RenderOptions
from pagemill.domain.errors import ConfigurationError
from pagemill.gateway.options import GatewayOptions
from pagemill.serving.options import ServeOptions
from pagemill.telemetry import LogFormat, LogLevel

DEFAULT_FILE = Path("pagemill.toml")


class EngineSettings(BaseModel):
    """Which engine reads the pages."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        "auto",
        description="`auto`, `embedded`, `openai`, `vllm` (a server started here), or the name of an installed engine.",
    )
    endpoints: tuple[str, ...] = Field((), description="Base URLs of OpenAI-compatible servers, for `openai`.")
    model: str | None = Field(None, description="Name of the served model, where a server has several; for `openai`.")
    languages: tuple[str, ...] = Field((), description="Languages of the documents, where known; for `openai`.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of that engine.")

    def options_of(self, engine: str) -> dict[str, Any]:
        """Options of the engine that was settled on; `openai` has endpoints, model and languages among them."""
        if engine != "openai":
            return dict(self.options)
        named: dict[str, Any] = {"endpoints": list(self.endpoints)} if self.endpoints else {}
        if self.model is not None:
            named["model"] = self.model
        if self.languages:
            named["languages"] = list(self.languages)
        return {**self.options, **named}


class LogSettings(BaseModel):
    """What is logged, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: LogLevel = Field("warning", description="The least severe level that is shown.")
    format: LogFormat = Field("console", description="`console` for people, `json` for one object a line.")


class Settings(BaseSettings):
    """The whole product's settings."""

    model_config = SettingsConfigDict(
        env_prefix="PAGEMILL_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    engine: EngineSettings = EngineSettings()
    conversion: ConversionOptions = ConversionOptions()
    render: RenderOptions = RenderOptions()
    serve: ServeOptions = ServeOptions()
    gateway: GatewayOptions = GatewayOptions()
    log: LogSettings = LogSettings()


def load_settings(file: Path | None = None, overrides: dict[str, Any] | None = None) -> Settings:
    """Builds the settings: `overrides` before environment before file before defaults.

    Args:
        file: A TOML file; without it `pagemill.toml` in the working folder, if there is one.
        overrides: Nested values from the command line.

    Raises:
        ConfigurationError: The file cannot be read, or a key or value is wrong.
    """
    path = file or (DEFAULT_FILE if DEFAULT_FILE.is_file() else None)
    if file is not None and not file.is_file():
        raise ConfigurationError(f"The settings file {file} does not exist.", "Check the path given with --config.")

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings
            sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
            return sources if path is None else (*sources, TomlConfigSettingsSource(settings_cls, toml_file=path))

    try:
        return FromFile(**(overrides or {}))
    except ValidationError as error:
        raise ConfigurationError(_describe(error), "See docs/reference/settings.md for all settings.") from error
    except ValueError as error:
        raise ConfigurationError(f"The settings cannot be read ({error}).", "Check the file's TOML syntax.") from error


def _describe(error: ValidationError) -> str:
    problems = []
    for item in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in item["loc"])
        unknown = item["type"] in ("extra_forbidden", "unexpected_keyword_argument")
        message = "is not a setting" if unknown else item["msg"]
        problems.append(f"{place}: {message}")
    return "Settings are wrong: " + "; ".join(problems) + "."
