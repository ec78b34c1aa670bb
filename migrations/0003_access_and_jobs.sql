-- Who may do what, work for runners, what is told to others, and what is remembered about it. Everything here is added:
-- a server that knows only the tables before it goes on working beside one that uses these.

alter table projects
    add column visibility text not null default 'public' check (visibility in ('public', 'private')),
    -- When a runner last took a job of it: of projects with jobs of equal priority the one that waited longest is next.
    add column last_claimed_at timestamptz;

-- A scope includes those before it: read < upload < agent < admin. No project means all of them. The older table
-- `tokens` is left to older servers, which would not see that a token has expired or is bound to a project.
create table access_tokens (
    id uuid primary key default gen_random_uuid(),
    name text not null,
    sha256 bytea not null unique check (length(sha256) = 32),
    scope text not null check (scope in ('read', 'upload', 'agent', 'admin')),
    project text references projects (slug),
    created_at timestamptz not null default now(),
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
create unique index access_tokens_in_use on access_tokens (name) where revoked_at is null;
insert into access_tokens (name, sha256, scope, created_by) select name, sha256, scope, 'an earlier version' from tokens
    on conflict (sha256) do nothing;

-- People who sign in by GitHub, by lower-case login.
create table members (
    login text not null check (login = lower(login)),
    scope text not null check (scope in ('read', 'upload', 'agent', 'admin')),
    project text references projects (slug),
    created_at timestamptz not null default now(),
    created_by text not null
);
create unique index members_once on members (login, coalesce(project, ''));

-- A browser that is signed in, by the SHA-256 of its cookie; its rights are those of the token or the member.
create table sessions (
    sha256 bytea primary key check (length(sha256) = 32),
    token uuid references access_tokens (id) on delete cascade,
    login text,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    check ((token is null) <> (login is null))
);
create index sessions_by_expiry on sessions (expires_at);

-- Every privileged act; written in its transaction, never changed.
create table audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    -- `token NAME`, `github LOGIN`, `console`, `server`
    actor text not null,
    -- `token.create`, `policy.set`, …
    action text not null,
    project text,
    subject text,
    detail jsonb not null default '{}',
    address text,
    request_id text
);
create index audit_by_project on audit (project, id desc);

create table runners (
    id uuid primary key,
    name text not null,
    labels jsonb not null,
    version text not null,
    projects text[] not null,
    token uuid references access_tokens (id) on delete set null,
    -- Its newest request for a job: an earlier one, whose connection may be gone, gets none any more.
    claim uuid,
    first_seen_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now()
);

-- One row per run that somebody asked for; the states are drawn in docs/architecture.md. Times are the database's.
create table jobs (
    run_id uuid primary key,
    project text not null references projects (slug),
    kind text not null check (kind in ('measure', 'backfill')),
    state text not null default 'queued'
        check (state in ('queued', 'leased', 'running', 'done', 'failed', 'cancelled', 'expired')),
    -- The highest first.
    priority smallint not null,
    revision jsonb not null,
    label text,
    -- Path of the plan in the checkout, and the commit it is taken from when that is not the measured one.
    plan text,
    plan_commit text,
    profile text check (profile in ('standard', 'pr', 'quick')),
    -- What a runner must have.
    labels jsonb not null default '{}',
    -- Of queued jobs of a project with the same key only the newest is carried out.
    supersedes text,
    -- The run whose missing baseline this one measures.
    baseline_of uuid,
    requested_by text not null,
    created_at timestamptz not null default now(),
    -- A job that no runner took by then expires.
    take_by timestamptz not null,
    attempt integer not null default 0,
    max_attempts integer not null default 3,
    runner uuid references runners (id) on delete set null,
    lease uuid,
    lease_expires_at timestamptz,
    -- Whether the runner was heard since it was given the job, and how often it asked anew without having been: then the
    -- answer to its request was lost on the way.
    heard boolean not null default false,
    undelivered integer not null default 0,
    -- Why the runner should stop, told with its next heartbeat.
    cancel text,
    started_at timestamptz,
    finished_at timestamptz,
    -- Why it failed, expired, was cancelled or went back to the queue.
    reason text,
    -- The newest live event, and the newest progress among them.
    last_seq bigint not null default 0,
    progress jsonb,
    check ((state in ('leased', 'running')) = (lease is not null and lease_expires_at is not null)),
    check ((state in ('done', 'failed', 'cancelled', 'expired')) = (finished_at is not null))
);
create index jobs_queued on jobs (priority desc, created_at) where state = 'queued';
create index jobs_leased on jobs (lease_expires_at) where state in ('leased', 'running');
create index jobs_by_time on jobs (project, created_at desc, run_id desc);
create index jobs_newest on jobs (created_at desc, run_id desc);
create index jobs_by_key on jobs (project, supersedes)
    where state in ('queued', 'leased', 'running') and supersedes is not null;
-- A commit's missing baseline is measured once at a time.
create unique index jobs_backfill on jobs (project, (revision ->> 'commit'), (labels::text))
    where kind = 'backfill' and state in ('queued', 'leased', 'running');

-- What a run's page and `plimsoll watch` follow. Numbered without gaps: whoever writes one holds the job's row.
create table live_events (
    run_id uuid not null references jobs (run_id) on delete cascade,
    seq bigint not null,
    at timestamptz not null default now(),
    event jsonb not null,
    primary key (run_id, seq)
);

-- What others are to be told, written in the transaction that decides it; numbered within a run.
create table outbox (
    id bigint generated always as identity primary key,
    run_id uuid not null,
    project text not null references projects (slug),
    seq integer not null check (seq > 0),
    event text not null,
    payload jsonb not null,
    created_at timestamptz not null default now(),
    unique (run_id, seq)
);
create index outbox_by_time on outbox (created_at);

create table webhooks (
    id uuid primary key default gen_random_uuid(),
    project text not null references projects (slug),
    url text not null,
    -- Signs what is sent, so it is kept as it is.
    secret text not null,
    created_at timestamptz not null default now(),
    created_by text not null
);

-- One event on its way to one webhook.
create table deliveries (
    id bigint generated always as identity primary key,
    event bigint not null references outbox (id) on delete cascade,
    webhook uuid not null references webhooks (id) on delete cascade,
    attempts integer not null default 0,
    next_at timestamptz not null default now(),
    delivered_at timestamptz,
    -- Given up.
    failed_at timestamptz,
    last_error text,
    unique (event, webhook)
);
create index deliveries_due on deliveries (next_at) where delivered_at is null and failed_at is null;

-- An upload in parts; one of each owner for a run, so that nobody stands in another's way.
create table uploads (
    id bigint generated always as identity primary key,
    run_id uuid not null,
    -- As the audit log names them.
    owner text not null,
    -- Of all parts together.
    sha256 bytea not null check (length(sha256) = 32),
    bytes bigint not null check (bytes > 0),
    received bigint not null default 0 check (received between 0 and bytes),
    updated_at timestamptz not null default now(),
    -- Its report is stored and its parts are gone; that it was answers a repeated request.
    finished_at timestamptz,
    unique (run_id, owner)
);
create index uploads_by_owner on uploads (owner) where finished_at is null;
create index uploads_by_age on uploads (updated_at);
create table upload_parts (
    upload bigint not null references uploads (id) on delete cascade,
    start bigint not null,
    body bytea not null,
    primary key (upload, start)
);
alter table upload_parts alter column body set storage external;

-- Since when a report's windows and series are gone; its hash stays that of the report as it was uploaded.
alter table reports add column thinned_at timestamptz;
create index reports_whole on reports (run_id) where thinned_at is null;

-- Verdicts that a missing baseline, measured later, replaced.
create table former_verdicts (
    run_id uuid not null references snapshots (run_id) on delete cascade,
    judged_at timestamptz not null,
    verdict text not null,
    comparison jsonb not null,
    replaced_at timestamptz not null default now(),
    primary key (run_id, judged_at)
);

-- What a comparison asks of a run, worked out when it arrived: verdicts stay exact once its report is thinned. Absent for
-- runs that an earlier version stored, whose reports are read instead.
alter table snapshots add column prepared jsonb;

-- What lists of snapshots show of a verdict, beside the comparison rather than out of it: hundreds of those take long to
-- unpack.
alter table verdicts
    add column sentence text generated always as (comparison ->> 'sentence') stored,
    add column gated jsonb
        generated always as (jsonb_path_query_array(comparison, '$.metrics[*] ? (@.gated == true)')) stored;

-- The history on one testbed, and what testbeds a project has.
create index snapshots_by_testbed on snapshots (project, testbed, started_at desc, run_id desc) include (plan_digest);
create index snapshots_by_branch on snapshots (project, branch, valid desc, started_at desc) where branch is not null;
