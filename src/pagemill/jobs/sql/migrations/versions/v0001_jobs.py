"""Jobs, their work and results, keys, rates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BigKey = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes all tables."""
    op.create_table(
        "flows",
        sa.Column("id", BigKey, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False),
        sa.Column("vtime", sa.BigInteger, nullable=False),
        sa.Column("last_turn", sa.BigInteger, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("rest_next", sa.Boolean, nullable=False),
        sa.Column("waiting", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("key_id", "priority", name="uq_flows_key_id"),
    )
    op.create_index("ix_flows_vtime", "flows", ["priority", "vtime"])

    op.create_table(
        "jobs",
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
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("pages_total", sa.Integer),
        sa.Column("pages_done", sa.Integer, nullable=False),
        sa.Column("pages_failed", sa.Integer, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("expires_at", sa.Double),
        sa.Column("gone_at", sa.Double),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("last_event", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("key_id", "idempotency_key", name="uq_jobs_idempotency"),
    )
    op.create_index("ix_jobs_created", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_key", "jobs", ["key_id", "created_at", "id"])
    op.create_index("ix_jobs_batch", "jobs", ["batch_id"])
    op.create_index("ix_jobs_place", "jobs", ["flow_id", "status", "turn"])
    op.create_index("ix_jobs_age", "jobs", ["status", "priority", "created_at"])
    op.create_index("ix_jobs_deadline", "jobs", ["status", "deadline"])
    op.create_index("ix_jobs_finished", "jobs", ["finished_at"])
    op.create_index("ix_jobs_expires", "jobs", ["expires_at"])
    op.create_index("ix_jobs_gone", "jobs", ["gone_at"])

    op.create_table(
        "documents",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("pages", sa.JSON(none_as_null=True)),
        sa.Column("secrets", sa.JSON(none_as_null=True)),
    )

    op.create_table(
        "tasks",
        sa.Column("id", BigKey, primary_key=True),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("flow_id", sa.BigInteger, nullable=False),
        sa.Column("lane", sa.SmallInteger, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("pages", sa.JSON, nullable=False),
        sa.Column("unfinished", sa.Integer, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("owner", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("takeovers", sa.Integer, nullable=False),
        sa.UniqueConstraint("token", name="uq_tasks_token"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tasks_queue", "tasks", ["flow_id", "state", "lane", "turn", "id"])
    op.create_index("ix_tasks_lease", "tasks", ["state", "lease_until"])
    op.create_index("ix_tasks_job", "tasks", ["job_id"])

    op.create_table(
        "pages",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("idx", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )

    op.create_table(
        "events",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
    )

    op.create_table(
        "deliveries",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("job", sa.JSON, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("due_at", sa.Double),
        sa.Column("owner", sa.Text),
        sa.Column("error", sa.Text),
    )
    op.create_index("ix_deliveries_due", "deliveries", ["due_at"])
    op.create_index("ix_deliveries_job", "deliveries", ["job_id"])

    op.create_table(
        "garbage",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("due_at", sa.Double, nullable=False),
    )
    op.create_index("ix_garbage_due", "garbage", ["due_at"])

    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("admin", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.Column("last_used_at", sa.Double),
    )
    op.create_index(
        "uq_api_keys_name",
        "api_keys",
        ["name"],
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )

    op.create_table(
        "rates",
        sa.Column("bucket", sa.Text, primary_key=True),
        sa.Column("full_at", sa.Double, nullable=False),
    )
    op.create_index("ix_rates_full", "rates", ["full_at"])
