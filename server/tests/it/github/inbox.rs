//! Deliveries on their way from the inbox to what is done about them: each is handled, whoever dies meanwhile, and those
//! of a repository in order.

use std::time::Duration;

use plimsoll_server::store::github::inbox::{Due, New, Put, failed, handled, has_room, put, renew, take};
use plimsoll_server::store::{self, Pool, database as open_database};

use crate::app::database;

const MINUTE: Duration = Duration::from_secs(60);

async fn pool() -> Pool {
    open_database::open(&database().await, 4).await.unwrap()
}

async fn store(pool: &Pool, delivery: &str, lane: Option<&str>) {
    let new = New { delivery, event: "push", lane, body: b"{}" };
    assert_eq!(put(pool, &new, true).await.unwrap(), Put::Stored);
}

/// In the order in which they came.
async fn taken(pool: &Pool) -> Vec<Due> {
    let mut due = take(pool, 10, MINUTE).await.unwrap();
    due.sort_by_key(|due| due.received_at);
    due
}

fn names(due: &[Due]) -> Vec<&str> {
    due.iter().map(|due| due.delivery.as_str()).collect()
}

#[tokio::test]
async fn of_a_lane_one_is_handled_at_a_time_and_the_oldest_first() {
    let pool = pool().await;
    for (delivery, lane) in [("a1", "a"), ("b1", "b"), ("a2", "a"), ("a3", "a")] {
        store(&pool, delivery, Some(lane)).await;
    }
    for delivery in ["none-1", "none-2"] {
        store(&pool, delivery, None).await;
    }
    let first = taken(&pool).await;
    assert_eq!(names(&first), ["a1", "b1", "none-1", "none-2"]);
    assert!(taken(&pool).await.is_empty(), "the others wait for those before them");
    handled(&pool, &first[0], "done").await.unwrap();
    assert_eq!(names(&taken(&pool).await), ["a2"]);
}

#[tokio::test]
async fn one_that_failed_holds_up_nobody_and_comes_again() {
    let pool = pool().await;
    store(&pool, "a1", Some("a")).await;
    store(&pool, "a2", Some("a")).await;
    let first = taken(&pool).await;
    failed(&pool, &first[0], "GitHub is away", Some(MINUTE)).await.unwrap();
    let second = taken(&pool).await;
    assert_eq!(names(&second), ["a2"]);
    handled(&pool, &second[0], "done").await.unwrap();
    assert!(taken(&pool).await.is_empty());
    sqlx::raw_sql("update github_inbox set next_at = now()").execute(&pool).await.unwrap();
    let again = taken(&pool).await;
    assert_eq!((names(&again), again[0].attempts, again[0].body.as_slice()), (vec!["a1"], 2, b"{}".as_slice()));
    failed(&pool, &again[0], "GitHub is away", None).await.unwrap();
    assert!(taken(&pool).await.is_empty(), "given up");
    let kept: (String, i32) =
        sqlx::query_as("select last_error, length(body) from github_inbox where failed_at is not null")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(kept, ("GitHub is away".to_owned(), 0));
}

#[tokio::test]
async fn what_a_dead_server_had_is_handled_by_another() {
    let pool = pool().await;
    store(&pool, "a1", Some("a")).await;
    // It dies, and its lease ends.
    let dead = take(&pool, 10, Duration::ZERO).await.unwrap().remove(0);
    let other = taken(&pool).await.remove(0);
    assert_eq!((dead.attempts, other.attempts), (1, 2));
    // Unless it lives after all: then it has no say any more.
    assert!(!renew(&pool, &dead, MINUTE).await.unwrap());
    handled(&pool, &dead, "late").await.unwrap();
    failed(&pool, &dead, "late", None).await.unwrap();
    assert!(renew(&pool, &other, MINUTE).await.unwrap());
    handled(&pool, &other, "in time").await.unwrap();
    let outcome = "select outcome from github_inbox where handled_at is not null and failed_at is null";
    assert_eq!(sqlx::query_scalar::<_, String>(outcome).fetch_one(&pool).await.unwrap(), "in time");
}

#[tokio::test]
async fn room_is_counted_in_rows_and_bytes_of_what_waits() {
    let pool = pool().await;
    for delivery in ["a", "b", "c"] {
        store(&pool, delivery, None).await;
    }
    let done = take(&pool, 1, MINUTE).await.unwrap();
    handled(&pool, &done[0], "done").await.unwrap();
    for (rows, bytes, fits) in [(3, 5, true), (2, 5, false), (3, 4, false)] {
        assert_eq!(has_room(&pool, rows, bytes).await.unwrap(), fits, "{rows} rows, {bytes} bytes");
    }
    let new = New { delivery: "d", event: "push", lane: None, body: b"{}" };
    assert_eq!(put(&pool, &new, false).await.unwrap(), Put::Full);
    assert_eq!(put(&pool, &New { delivery: "a", ..new }, false).await.unwrap(), Put::Known);
}

#[tokio::test]
async fn a_lease_that_is_renewed_lasts() {
    let pool = pool().await;
    store(&pool, "a1", Some("a")).await;
    let due = take(&pool, 10, Duration::ZERO).await.unwrap().remove(0);
    assert!(renew(&pool, &due, MINUTE).await.unwrap());
    assert!(taken(&pool).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_share_what_is_due() {
    let pool = pool().await;
    let mut transaction = store::begin(&pool).await.unwrap();
    for n in 0..200 {
        let (delivery, lane) = (format!("d-{n}"), format!("lane {}", n % 40));
        let new = New { delivery: &delivery, event: "push", lane: Some(&lane), body: b"{}" };
        assert_eq!(put(&mut *transaction, &new, true).await.unwrap(), Put::Stored);
    }
    store::commit(transaction).await.unwrap();
    let server = || {
        let pool = pool.clone();
        tokio::spawn(async move {
            let mut done = 0;
            while done < 200 {
                let due = take(&pool, 4, MINUTE).await.unwrap();
                done = if due.is_empty() { finished(&pool).await } else { done };
                for due in due {
                    handled(&pool, &due, "done").await.unwrap();
                }
            }
        })
    };
    for server in [server(), server(), server()] {
        tokio::time::timeout(MINUTE, server).await.expect("they end").unwrap();
    }
    let attempts: i32 = sqlx::query_scalar("select max(attempts) from github_inbox").fetch_one(&pool).await.unwrap();
    assert_eq!(attempts, 1, "nobody handles what another has");
}

async fn finished(pool: &Pool) -> i64 {
    let sql = "select count(*) from github_inbox where handled_at is not null";
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}
