from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pagemill.conversion import ConversionOptions
from pagemill.domain import Job, NewJob, Priority
from pagemill.domain.errors import (
    ForbiddenUrlError,
    JobConflictError,
    JobNotFoundError,
    PagemillError,
    QueueFullError,
    RequestError,
    StoreUnavailableError,
)
from pagemill.gateway.auth import Caller
from pagemill.gateway.multipart import Form
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.schemas import Wishes
from pagemill.gateway.submission import Order, submit, wishes_of_form
from pagemill.gateway.uploads import Upload
from pagemill.jobs.options import DocumentOptions


class Stores:
    """Blobs and jobs in one, which note in which order they were asked; `failure` is what submitting ends with."""

    def __init__(self, failure: PagemillError | None = None, *, taken: bool = False, away: bool = False) -> None:
        self.failure = failure
        self.taken = taken
        self.away = away
        self.calls: list[str] = []
        self.kept: set[str] = set()
        self.jobs: list[NewJob] = []

    async def put(self, name: str, file: Path) -> None:
        self.calls.append("put")
        self.kept.add(name)
        if name.endswith("full"):
            raise StoreUnavailableError("No space is left.")

    async def delete(self, names: list[str]) -> None:
        self.kept -= set(names)

    async def submit(self, jobs: Sequence[NewJob]) -> list[tuple[Any, bool]]:
        self.calls.append("submit")
        self.jobs = list(jobs)
        if self.failure is not None:
            raise self.failure
        return [(job, True) for job in jobs]

    async def get(self, job_id: str) -> Job | None:
        if self.away:
            raise StoreUnavailableError("The database does not answer.")
        if not self.taken:
            raise JobNotFoundError("There is none.")
        return None

    def services(self, **options: Any) -> Any:
        return SimpleNamespace(
            options=GatewayOptions.model_validate(options),
            conversion=ConversionOptions(),
            blobs=self,
            jobs=self,
            wake=lambda: self.calls.append("wake"),
        )


def upload(data: bytes = b"%PDF") -> Upload:
    return Upload(Path("/nowhere"), "a.pdf", len(data), hashlib.sha256(data).hexdigest())


def order(key: str | None = None, **wishes: Any) -> Order:
    return Order(Wishes.model_validate(wishes), key, "req_1")


ALICE = Caller("key_a", admin=False)


async def test_the_document_is_safe_before_the_job_and_the_job_before_the_answer() -> None:
    stores = Stores()
    await submit(stores.services(), ALICE, [upload(), upload()], order(passwords=["secret"]), batch=True)
    assert stores.calls == ["put", "put", "submit", "wake"]
    assert stores.kept == {job.blob for job in stores.jobs}
    assert len({job.batch_id for job in stores.jobs}) == 1
    assert {(job.key_id, job.secrets, job.request_id) for job in stores.jobs} == {("key_a", ("secret",), "req_1")}


@pytest.mark.parametrize(
    "failure", [QueueFullError("Full."), JobConflictError("Used."), StoreUnavailableError("Away.")]
)
async def test_a_refused_document_is_not_kept(failure: PagemillError) -> None:
    stores = Stores(failure)
    with pytest.raises(type(failure)):
        await submit(stores.services(), ALICE, [upload()], order())
    assert stores.kept == set()


@pytest.mark.parametrize("stores", [{"taken": True}, {"away": True}])
async def test_a_document_whose_job_may_be_there_is_kept(stores: dict[str, bool]) -> None:
    unsure = Stores(StoreUnavailableError("The connection broke."), **stores)
    with pytest.raises(StoreUnavailableError):
        await submit(unsure.services(), ALICE, [upload()], order())
    assert len(unsure.kept) == 1


async def test_fingerprints_tell_apart_all_that_matters() -> None:
    async def fingerprint(*uploads: Upload, batch: bool = False, **wishes: Any) -> str:
        stores = Stores()
        options = {"webhook": {"secret": "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
        await submit(stores.services(**options), ALICE, list(uploads), order("k", **wishes), batch=batch)
        return stores.jobs[0].fingerprint

    first = await fingerprint(upload())
    assert await fingerprint(upload(), options={}) == first
    others = [
        await fingerprint(upload(b"other")),
        await fingerprint(upload(), upload(), batch=True),
        await fingerprint(upload(), batch=True),
        await fingerprint(upload(), options={"pages": "1"}),
        await fingerprint(upload(), priority="batch"),
        await fingerprint(upload(), webhook="https://example.com/hook"),
    ]
    assert len({first, *others}) == len(others) + 1


async def test_documents_of_a_batch_have_keys_of_their_own() -> None:
    stores = Stores()
    await submit(stores.services(), ALICE, [upload(), upload()], order("k"), batch=True)
    keys = [job.idempotency_key for job in stores.jobs]
    assert len(set(keys)) == 2
    assert "k" not in keys


@pytest.mark.parametrize(
    ("wishes", "error"),
    [({"options": {"pages": "0"}}, RequestError), ({"webhook": "https://example.com"}, ForbiddenUrlError)],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_kept(
    wishes: dict[str, Any], error: type[PagemillError]
) -> None:
    stores = Stores()
    with pytest.raises(error):
        await submit(stores.services(), ALICE, [upload()], order(**wishes))
    assert stores.calls == []


def test_a_form_says_what_json_says() -> None:
    form = Form((), (("furniture", "keep"), ("orient", "false"), ("password", "a"), ("password", "b")))
    assert wishes_of_form(form, Priority.BATCH) == Wishes(
        options=DocumentOptions.model_validate({"furniture": "keep", "orient": False}),
        priority=Priority.BATCH,
        passwords=("a", "b"),
    )


@pytest.mark.parametrize(
    "fields",
    [
        (("pages", "1"), ("pages", "2")),
        (("password", "x"),) * 11,
        (("options", "[" * 100_000),),
        (("options", '"pages"'),),
        (("id", "1"),),
    ],
    ids=["twice", "many", "deep", "no-object", "unknown"],
)
def test_wrong_forms_are_refused(fields: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(RequestError):
        wishes_of_form(Form((), fields), Priority.BATCH)
