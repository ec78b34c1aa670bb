-- GitHub: what it told us, what we know of it, and what it is to be told. Everything here is added: a server that knows
-- only the tables before it goes on working beside one that uses these.

create table github_installations (
    id bigint primary key,
    account text not null,
    suspended boolean not null default false,
    removed_at timestamptz
);

-- By GitHub's id, which outlives a new name.
create table github_repositories (
    id bigint primary key,
    installation bigint not null references github_installations (id),
    -- owner/name
    full_name text not null,
    default_branch text not null default 'main',
    private boolean not null,
    -- The installation does not reach it any more.
    removed_at timestamptz
);
create index github_repositories_by_name on github_repositories (lower(full_name));

-- The repository that a project is measured from.
create table github_links (
    project text primary key references projects (slug),
    repository bigint not null references github_repositories (id),
    plan text not null default 'plimsoll.toml',
    -- Globs of which one must match a changed file; empty matches every file.
    paths text[] not null default '{}',
    -- A glob; without one, every tag that is a semantic version.
    tags text,
    -- What a runner must have.
    labels jsonb not null default '{}',
    -- The newest commit of the default branch whose plan and policy were read, and what was wrong with them.
    read_commit text,
    read_error text,
    -- How long the merge queue waits for the check.
    queue_minutes integer not null default 60 check (queue_minutes between 5 and 360),
    created_at timestamptz not null default now(),
    created_by text not null
);
create index github_links_by_repository on github_links (repository);

-- Deliveries as they came, checked and not yet read. One that is handled stays a while without its body, so that it is
-- known when it comes again.
create table github_inbox (
    delivery text primary key,
    event text not null,
    -- What it is about: `repository ID` or `installation ID`. One of a lane is handled at a time.
    lane text,
    body bytea not null,
    received_at timestamptz not null default now(),
    attempts integer not null default 0,
    next_at timestamptz not null default now(),
    -- Somebody handles it, or died of it.
    taken_until timestamptz,
    handled_at timestamptz,
    -- What became of it, in a phrase.
    outcome text,
    -- Given up: a delivery under the same id is taken again.
    failed_at timestamptz,
    last_error text
);
create index github_inbox_due on github_inbox (received_at) where handled_at is null and failed_at is null;
create index github_inbox_by_age on github_inbox (received_at);
create index github_inbox_given_up on github_inbox (failed_at) where failed_at is not null;

create table github_pulls (
    repository bigint not null references github_repositories (id),
    number bigint not null check (number > 0),
    head_sha text not null,
    -- When this head was first heard of, by the later of our clock and GitHub's, for commands that were written before it.
    head_seen_at timestamptz not null,
    base_ref text not null,
    base_sha text not null,
    -- From another repository, or from one that is gone.
    fork boolean not null,
    open boolean not null,
    -- GitHub's time of the newest state that is known: an older one changes nothing.
    updated_at timestamptz not null,
    -- When that state was asked for: GitHub's times are whole seconds.
    asked_at timestamptz not null,
    -- The head of a fork that somebody with write access lets run.
    approved_sha text,
    approved_by text,
    primary key (repository, number)
);
create index github_pulls_by_head on github_pulls (repository, head_sha) where open;

-- Tags that are known, measured or not: one run for each name and commit.
create table github_tags (
    project text not null references github_links (project) on delete cascade,
    tag text not null,
    commit_sha text not null,
    seen_at timestamptz not null default now(),
    primary key (project, tag, commit_sha)
);

-- A check run of ours: one for each head that is to be judged, and a new one for each "run again".
create table github_checks (
    -- GitHub's `external_id`.
    id uuid primary key,
    project text not null references projects (slug),
    repository bigint not null references github_repositories (id),
    head_sha text not null,
    kind text not null check (kind in ('branch', 'tag', 'pull_request', 'merge_group')),
    tag text,
    pull_request bigint,
    -- The run that decides it.
    run_id uuid,
    -- How it concludes whatever a run says: {"conclusion": …, "title": …, "summary": …}
    settled jsonb,
    -- In the merge queue: by then it must be concluded.
    deadline timestamptz,
    created_at timestamptz not null default now(),
    -- Another of the same project and head took its place.
    superseded_at timestamptz,
    -- GitHub's id of it, once it is known.
    check_run bigint,
    -- When and what it was last told: a digest of the content.
    told_at timestamptz,
    told text,
    check (run_id is not null or settled is not null)
);
-- Exactly one is the newest of a head. That of a release has a name of its own, so that it never stands for the check
-- which a merge waits for.
create unique index github_checks_newest on github_checks (project, head_sha, (kind = 'tag'))
    where superseded_at is null;
create index github_checks_by_run on github_checks (run_id) where run_id is not null;
create index github_checks_by_head on github_checks (repository, head_sha);
create index github_checks_by_project on github_checks (project, head_sha);
create index github_checks_of_branch on github_checks (project, id) where kind = 'branch';
create index github_checks_by_pull on github_checks (repository, pull_request, created_at desc)
    where pull_request is not null;

-- The one comment of a project on a pull request.
create table github_comments (
    project text not null references projects (slug),
    repository bigint not null references github_repositories (id),
    pull_request bigint not null,
    comment bigint,
    told_at timestamptz,
    told text,
    primary key (project, repository, pull_request)
);

-- What GitHub is to be told, written in the transaction that decides it. What it is told is worked out when it is sent:
-- the newest state, so that of several rows for the same thing the last is enough. Rows of one lane go in order.
create table github_writes (
    id bigint generated always as identity primary key,
    -- `REPOSITORY#PULL` or `REPOSITORY@SHA`
    lane text not null,
    -- One of the two.
    check_id uuid references github_checks (id) on delete cascade,
    comment_project text references projects (slug),
    comment_repository bigint references github_repositories (id),
    comment_pull bigint,
    created_at timestamptz not null default now(),
    attempts integer not null default 0,
    next_at timestamptz not null default now(),
    done_at timestamptz,
    failed_at timestamptz,
    last_error text,
    check ((check_id is null) = (comment_project is not null)),
    check ((comment_project is null) = (comment_repository is null)
        and (comment_project is null) = (comment_pull is null))
);
create index github_writes_due on github_writes (lane, id) where done_at is null and failed_at is null;
create index github_writes_by_age on github_writes (created_at);

-- Until when nothing is sent by an installation, as GitHub asked, and what was sent lately.
create table github_pace (
    installation bigint primary key,
    not_before timestamptz not null default now(),
    minute_at timestamptz not null default now(),
    minute_writes integer not null default 0,
    hour_at timestamptz not null default now(),
    hour_writes integer not null default 0
);

-- Regressions that a person took on, with the reason; bound to the run, and so to its commit.
create table acceptances (
    run_id uuid not null references snapshots (run_id) on delete cascade,
    -- A gated metric, or `all`.
    metric text not null,
    accepted_by text not null,
    reason text not null,
    accepted_at timestamptz not null default now(),
    primary key (run_id, metric)
);

alter table snapshots
    -- Whether it may decide a check. Not so a report of a pull request that came by a mere upload token: whoever can
    -- change the workflow could have forged it.
    add column gates boolean not null default true,
    -- Who brought it, as the audit log names them; of a workflow its repository and run.
    add column brought_by text;

-- What all servers on this database share and nobody else knows, made by whoever needs it first.
create table server_secrets (
    name text primary key,
    secret bytea not null,
    created_at timestamptz not null default now()
);
