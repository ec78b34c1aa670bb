-- Projects, their snapshots, the reports behind them, and the verdict on each.

create table projects (
    slug text primary key,
    policy jsonb not null,
    created_at timestamptz not null default now()
);

create table testbeds (
    fingerprint text primary key,
    label text not null,
    facts jsonb not null
);

-- One row per run, never changed afterwards, with what lists, charts and the baseline rule ask for. A figure that was
-- not measured is null.
create table snapshots (
    run_id uuid primary key,
    project text not null references projects (slug),
    testbed text not null references testbeds (fingerprint),
    plan_digest text not null,
    -- The whole revision, for the baseline rule; the columns below it are for look-ups.
    revision jsonb not null,
    label text,
    commit_sha text,
    tag text,
    branch text,
    pull_request bigint,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    received_at timestamptz not null default now(),
    status text not null check (status in ('complete', 'interrupted', 'failed')),
    valid boolean not null,
    -- Valid, and neither judged `regressed` nor left undecided, unless a person accepted it.
    accepted boolean not null,
    figures jsonb not null,
    stability_workers integer check (stability_workers > 0),
    tps double precision,
    p50_ms double precision,
    p99_ms double precision,
    p99_low_ms double precision,
    p99_high_ms double precision,
    error_rate double precision check (error_rate between 0 and 1),
    capacity_tps double precision,
    knee_workers integer,
    capacity_at_workers integer,
    check (finished_at >= started_at),
    check (valid or not accepted)
);

-- The history of a project, newest first.
create index snapshots_by_time on snapshots (project, started_at desc, run_id desc);
-- The runs that compare: baseline rule and pinned load.
create index snapshots_comparable on snapshots (project, plan_digest, testbed, started_at desc) where valid;
-- Revisions by name.
create index snapshots_by_tag on snapshots (project, tag) where tag is not null;
create index snapshots_by_commit on snapshots (project, commit_sha text_pattern_ops) where commit_sha is not null;

-- The report as it was checked, compressed with zstd; the hash is over the uncompressed bytes and tells a repeated
-- upload from a different report under the same run id.
create table reports (
    run_id uuid primary key references snapshots (run_id) on delete cascade,
    sha256 bytea not null check (length(sha256) = 32),
    bytes bigint not null,
    body bytea not null
);
-- Compressed already.
alter table reports alter column body set storage external;

create table verdicts (
    run_id uuid primary key references snapshots (run_id) on delete cascade,
    verdict text not null check (verdict in ('pass', 'regressed', 'inconclusive', 'invalid', 'no_baseline')),
    baseline_run_ids uuid[] not null,
    comparison jsonb not null,
    judged_at timestamptz not null default now()
);

create table tokens (
    name text primary key,
    sha256 bytea not null check (length(sha256) = 32),
    scope text not null check (scope in ('upload')),
    created_at timestamptz not null default now()
);
