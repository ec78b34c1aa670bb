//! Retention: what goes is what nobody needs any more, and what stays still tells the same.

use jiff::Timestamp;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::store;
use plimsoll_server::store::prune::Counts;
use plimsoll_server::tasks::prune::{cutoffs, step};
use plimsoll_server::tasks::{pack, verdict};
use secrecy::ExposeSecret as _;

use crate::app::{App, database, release};
use crate::program::program;

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread")]
async fn old_reports_lose_their_windows_and_nothing_that_is_shown_or_judged() {
    let app = App::new().await;
    let now = Timestamp::now();
    let at = |days: u32| now - DAY * days;
    let old = Synthetic { started_at: at(200), ..release("v1.0.0", 0) }.report();
    let young = Synthetic { started_at: at(2), ..release("v1.1.0", 1) }.report();
    let first = app.upload(&old).await.json;
    app.upload(&young).await;
    let compared = verdict::compare(&app.state, old.run_id, young.run_id).await.unwrap();
    let shown = app.get(&format!("/api/v1/snapshots/{}", old.run_id)).await.json;

    let before = cutoffs(now, Some(90 * DAY));
    let counts = Counts { reports: 1, ..Counts::default() };
    assert_eq!(store::prune::count(&app.pool, &before).await.unwrap(), counts);
    // Nothing goes where nobody asked for it, and two at once do it once.
    assert_eq!(step(&app.pool, &cutoffs(now, None), None).await.unwrap().total(), 0);
    let (one, two) = tokio::join!(step(&app.pool, &before, None), step(&app.pool, &before, None));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.total() + two.total(), 1);
    assert!(one.bytes_after + two.bytes_after < one.bytes_before + two.bytes_before);
    assert_eq!(step(&app.pool, &before, None).await.unwrap().total(), 0, "it is done");

    let stored = store::reports::get(&app.pool, old.run_id).await.unwrap().unwrap();
    let thinned = pack::unpack(&stored).unwrap();
    assert!(thinned.is_thinned());
    assert_eq!(Figures::of(&thinned), Figures::of(&old));
    assert_eq!(stored.sha256, pack::pack(&old).unwrap().sha256, "the hash of what was uploaded");
    let whole = store::reports::get(&app.pool, young.run_id).await.unwrap().unwrap();
    assert_eq!(pack::unpack(&whole).unwrap(), young);
    assert_eq!(verdict::compare(&app.state, old.run_id, young.run_id).await.unwrap(), compared);
    assert_eq!(app.get(&format!("/api/v1/snapshots/{}", old.run_id)).await.json, shown);
    // The report sent again is still the same one; another is still another.
    let again = app.post(old.to_json()).await;
    assert_eq!((again.status.as_u16(), &again.json["comparison"]), (200, &first["comparison"]));
    assert_eq!(app.post(thinned.to_json()).await.status.as_u16(), 409);
    // New runs are judged against it.
    let next = Synthetic { started_at: at(1), service_ms: 84.0, ..release("v1.2.0", 2) }.report();
    assert_eq!(app.upload(&next).await.json["comparison"]["verdict"], "regressed");
}

/// Rows of every bounded kind, some old and some not.
const ROWS: &str = "
    insert into projects (slug, policy) values ('p', '{}');
    insert into jobs (run_id, project, kind, state, priority, revision, requested_by, take_by, finished_at) values
        ('00000000-0000-0000-0000-000000000001', 'p', 'measure', 'done', 1, '{}', 'x', now(), now() - interval '8 days'),
        ('00000000-0000-0000-0000-000000000002', 'p', 'measure', 'done', 1, '{}', 'x', now(), now() - interval '6 days'),
        ('00000000-0000-0000-0000-000000000003', 'p', 'measure', 'queued', 1, '{}', 'x', now(), null);
    insert into live_events (run_id, seq, at, event)
        select run_id, seq, now() - interval '9 days', '{}' from jobs, generate_series(1, 3000) seq;
    insert into sessions (sha256, login, expires_at) values
        (sha256('old'), 'a', now() - interval '1 second'), (sha256('new'), 'a', now() + interval '1 day');
    insert into uploads (run_id, owner, sha256, bytes, updated_at) values
        (gen_random_uuid(), 'x', sha256('x'), 7, now() - interval '8 days'), (gen_random_uuid(), 'x', sha256('x'), 7, now());
    insert into upload_parts (upload, start, body) select id, 0, 'part' from uploads;
    insert into webhooks (project, url, secret, created_by) values ('p', 'http://example.com', 's', 'x');
    -- Of the first run all is told, of the second one event is not; the third is young.
    insert into outbox (run_id, project, seq, event, payload, created_at)
        select run_id, 'p', seq, case seq when 3 then 'run.finished' else 'run.changed' end, '{}',
               case right(run_id::text, 1) when '3' then now() else now() - interval '31 days' end
        from jobs, generate_series(1, 4) seq;
    insert into deliveries (event, webhook, delivered_at)
        select o.id, w.id, case when right(run_id::text, 1) = '2' and seq = 2 then null else now() end
        from outbox o, webhooks w;
    -- Not heard for long; one of them still holds the first run, as far as is known.
    insert into runners (id, name, labels, version, projects, last_seen_at)
        select gen_random_uuid(), 'r' || n, '{}', '1', '{p}', now() - case n when 4 then 29 else 31 end * interval '1 day'
        from generate_series(1, 4) n;
    insert into jobs (run_id, project, kind, state, priority, revision, requested_by, take_by, runner, lease, lease_expires_at)
        select gen_random_uuid(), 'p', 'measure', case name when 'r1' then 'running' else 'queued' end, 1, '{}', 'x',
               now(), id, l.lease, case when l.lease is not null then now() end
        from runners, lateral (select case name when 'r1' then gen_random_uuid() end as lease) l
        where name in ('r1', 'r2');
    -- Handled, given up, and neither; and handled lately.
    insert into github_inbox (delivery, event, body, received_at, handled_at, failed_at)
        select 'd' || n, 'push', '', now() - case n when 4 then 29 else 31 end * interval '1 day',
               case when n in (1, 4) then now() end, case n when 2 then now() end
        from generate_series(1, 4) n;
";

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_recent_past_needs_goes() {
    let app = App::new().await;
    sqlx::raw_sql(ROWS).execute(&app.pool).await.unwrap();
    let now = store::prune::now(&app.pool).await.unwrap();
    let before = cutoffs(now, None);
    let would = store::prune::count(&app.pool, &before).await.unwrap();
    let wanted = Counts {
        live_events: 3_000,
        sessions: 1,
        uploads: 1,
        deliveries: 7,
        events: 3,
        runners: 2,
        inbox: 2,
        told: 0,
        reports: 0,
    };
    assert_eq!(would, wanted);
    let mut all = step(&app.pool, &before, None).await.unwrap();
    assert!(all.counts.live_events < 3_000, "in batches");
    loop {
        let more = step(&app.pool, &before, None).await.unwrap();
        if more.total() == 0 {
            break;
        }
        all.add(&more);
    }
    assert_eq!(all.counts, wanted);
    let left = "select array[(select count(*) from live_events), (select count(*) from sessions),
                             (select count(*) from upload_parts), (select count(*) from outbox),
                             (select count(*) from deliveries)]";
    let left: Vec<i64> = sqlx::query_scalar(left).fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, [6_000, 1, 1, 9, 5]);
    let kept = "select array_agg(name order by name) from runners";
    let kept: Vec<String> = sqlx::query_scalar(kept).fetch_one(&app.pool).await.unwrap();
    assert_eq!(kept, ["r1", "r4"], "what holds a run, and who was heard lately");
    // Numbering goes on where it was.
    let last = "select max(seq) from outbox where right(run_id::text, 1) = '1'";
    assert_eq!(sqlx::query_scalar::<_, i32>(last).fetch_one(&app.pool).await.unwrap(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_holds_a_row_is_not_waited_for() {
    let app = App::new().await;
    let old = Synthetic { started_at: Timestamp::now() - 200 * DAY, ..release("v1.0.0", 0) }.report();
    app.upload(&old).await;
    sqlx::raw_sql(ROWS).execute(&app.pool).await.unwrap();
    let before = cutoffs(Timestamp::now(), Some(90 * DAY));
    let mut holder = app.pool.begin().await.unwrap();
    sqlx::raw_sql("select from reports for update; select from sessions for update")
        .execute(&mut *holder)
        .await
        .unwrap();
    let done = step(&app.pool, &before, None).await.unwrap();
    assert_eq!((done.counts.reports, done.counts.sessions), (0, 0));
    holder.rollback().await.unwrap();
    let done = step(&app.pool, &before, None).await.unwrap();
    assert_eq!((done.counts.reports, done.counts.sessions), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_says_what_it_would_do_and_did() {
    let url = database().await;
    let pool = store::database::open(&url, 2).await.unwrap();
    sqlx::raw_sql(ROWS).execute(&pool).await.unwrap();
    let run = |arguments: &'static [&'static str]| {
        let mut command = program();
        command.arg("prune").args(arguments).env("DATABASE_URL", url.expose_secret());
        async { tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap() }
    };
    let would = run(&["--dry-run", "--json"]).await;
    let document: serde_json::Value = serde_json::from_slice(&would.stdout).unwrap();
    assert_eq!((&document["dry_run"], &document["counts"]["live_events"]), (&true.into(), &3_000.into()));
    let done = run(&["--windows-after", "90d"]).await;
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("Removed 3000 live events, 1 sessions, 1 uploads"), "{said}");
    let again: serde_json::Value = serde_json::from_slice(&run(&["--json"]).await.stdout).unwrap();
    assert_eq!(again["counts"]["live_events"], 0);
    assert_eq!(run(&["--windows-after", "soon"]).await.status.code(), Some(2));
}
