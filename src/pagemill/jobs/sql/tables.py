"""The tables. `migrations` makes them; a test compares the two."""

from __future__ import annotations

import sqlalchemy as sa

QUEUED, LEASED = 0, 1
"""States of a task; one that has ended has no row."""

FIRST, REST = 0, 1
"""Lanes of a flow: the first piece of each document, and all others."""

BigKey = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Keys that the database numbers: SQLite does so for its own integers alone."""

metadata = sa.MetaData()

flows = sa.Table(
    "flows",
    metadata,
    sa.Column("id", BigKey, primary_key=True),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("priority", sa.SmallInteger, nullable=False),
    sa.Column("vtime", sa.BigInteger, nullable=False, default=0),
    sa.Column("last_turn", sa.BigInteger, nullable=False, default=0),
    sa.Column("round", sa.BigInteger, nullable=False, default=0),
    sa.Column("rest_next", sa.Boolean, nullable=False, default=False),
    sa.Column("waiting", sa.BigInteger, nullable=False, default=0),
    sa.UniqueConstraint("key_id", "priority", name="uq_flows_key_id"),
    sa.Index("ix_flows_vtime", "priority", "vtime"),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("flow_id", sa.BigInteger, nullable=False),
    sa.Column("turn", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("blob", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("priority", sa.SmallInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("batch_id", sa.Text),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("webhook", sa.Text),
    sa.Column("request_id", sa.Text, nullable=False),
    sa.Column("trace", sa.Text, nullable=False),
    sa.Column("deadline", sa.Double),
    sa.Column("format", sa.Text, nullable=False, default=""),
    sa.Column("pages_total", sa.Integer),
    sa.Column("pages_done", sa.Integer, nullable=False, default=0),
    sa.Column("pages_failed", sa.Integer, nullable=False, default=0),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("expires_at", sa.Double),
    sa.Column("gone_at", sa.Double),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("attempt", sa.Integer, nullable=False, default=1),
    sa.Column("last_event", sa.BigInteger, nullable=False, default=0),
    sa.UniqueConstraint("key_id", "idempotency_key", name="uq_jobs_idempotency"),
    sa.Index("ix_jobs_created", "created_at", "id"),
    sa.Index("ix_jobs_key", "key_id", "created_at", "id"),
    sa.Index("ix_jobs_batch", "batch_id"),
    sa.Index("ix_jobs_place", "flow_id", "status", "turn"),
    sa.Index("ix_jobs_age", "status", "priority", "created_at"),
    sa.Index("ix_jobs_deadline", "status", "deadline"),
    sa.Index("ix_jobs_finished", "finished_at"),
    sa.Index("ix_jobs_expires", "expires_at"),
    sa.Index("ix_jobs_gone", "gone_at"),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("pages", sa.JSON(none_as_null=True)),
    sa.Column("secrets", sa.JSON(none_as_null=True)),
)
"""What is large or secret of a job and seldom read; the row of `jobs` is written anew with every page."""

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", BigKey, primary_key=True),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("flow_id", sa.BigInteger, nullable=False),
    sa.Column("lane", sa.SmallInteger, nullable=False),
    sa.Column("turn", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("pages", sa.JSON, nullable=False),
    sa.Column("unfinished", sa.Integer, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False, default=QUEUED),
    sa.Column("token", sa.Text),
    sa.Column("owner", sa.Text),
    sa.Column("lease_until", sa.Double),
    sa.Column("takeovers", sa.Integer, nullable=False, default=0),
    sa.UniqueConstraint("token", name="uq_tasks_token"),
    sa.Index("ix_tasks_queue", "flow_id", "state", "lane", "turn", "id"),
    sa.Index("ix_tasks_lease", "state", "lease_until"),
    sa.Index("ix_tasks_job", "job_id"),
    sqlite_autoincrement=True,
)

pages = sa.Table(
    "pages",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("idx", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("ok", sa.Boolean, nullable=False),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("figures", sa.JSON, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("data", sa.JSON, nullable=False),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("job", sa.JSON, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("due_at", sa.Double),
    sa.Column("owner", sa.Text),
    sa.Column("error", sa.Text),
    sa.Index("ix_deliveries_due", "due_at"),
    sa.Index("ix_deliveries_job", "job_id"),
)

garbage = sa.Table(
    "garbage",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("due_at", sa.Double, nullable=False),
    sa.Index("ix_garbage_due", "due_at"),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("admin", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("revoked_at", sa.Double),
    sa.Column("last_used_at", sa.Double),
    sa.Index(
        "uq_api_keys_name",
        "name",
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    ),
)

rates = sa.Table(
    "rates",
    metadata,
    sa.Column("bucket", sa.Text, primary_key=True),
    sa.Column("full_at", sa.Double, nullable=False),
    sa.Index("ix_rates_full", "full_at"),
)
