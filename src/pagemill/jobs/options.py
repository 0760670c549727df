"""What a client may set about the conversion of its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pagemill.conversion import ConversionOptions, Enhancement, FurniturePolicy
from pagemill.documents import PageSelection


class DocumentOptions(BaseModel):
    """Options of one document; what is left out is as the service is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pages: str | None = Field(None, max_length=1000, description="Page ranges such as `1-3,7,10-`; all by default.")
    furniture: FurniturePolicy | None = Field(None, description="Headers, footers, page numbers.")
    page_markers: bool | None = Field(None, description="Whether each page starts with a comment that names it.")
    enhance: Enhancement | None = Field(None, description="What is done to faint scans.")
    orient: bool | None = Field(None, description="Whether turned pages are looked for.")
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling of engines that write text.")
    top_p: float | None = Field(None, gt=0, le=1, description="Sampling of engines that write text.")
    max_tokens: int | None = Field(None, ge=1, le=32_768, description="Most tokens of one page.")

    def stored(self) -> dict[str, Any]:
        """As plain JSON values, without what was left out."""
        return self.model_dump(mode="json", exclude_none=True)

    def check(self) -> None:
        """Refuses page ranges that are none.

        Raises:
            ConfigurationError: They cannot be read.
        """
        PageSelection.parse(self.pages)


def conversion_options(base: ConversionOptions, stored: Mapping[str, Any]) -> ConversionOptions:
    """The service's options with those of a job, as `DocumentOptions.stored` gave them."""
    given = DocumentOptions.model_validate(stored).model_dump(exclude_none=True)
    sampling = {name: given.pop(name) for name in ("temperature", "top_p", "max_tokens") if name in given}
    return replace(base, **given, sampling=replace(base.sampling, **sampling))
