//! The outbox: what it has taken arrives, whatever is killed, and what is refused is kept with its reason.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_runner::outbox::{Outbox, Sent};
use plimsoll_runner::spool;
use plimsoll_runner::upload::Server;
use serde_json::json;
use tokio::sync::watch;

use crate::receiver::{Receiver, State};
use crate::wait_for;

fn report(number: u64) -> Report {
    let run_id = RunId(uuid::Uuid::now_v7());
    Report { run_id, ..Synthetic { seed: number, stability_s: 60, ..Synthetic::default() }.report() }
}

async fn send(outbox: &Outbox, receiver: &Receiver) -> Sent {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (_stop, stopped) = watch::channel(false);
    let server = Server::new(&receiver.address, None).unwrap();
    let all = outbox.send_all(&server, stopped);
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("it ends").unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn reports_are_sent_in_the_order_of_their_runs_over_a_bad_network_and_the_newest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let runs: Vec<String> = (0..23)
        .map(|number| {
            let report = report(number);
            let path = outbox.keep(&report).unwrap();
            assert_eq!(spool::read(&path).unwrap(), report, "it is compressed, and reads");
            report.run_id.to_string()
        })
        .collect();
    let receiver = Receiver::start(State { cuts: [0, 3_000].into(), ..State::default() });
    let sent = send(&outbox, &receiver).await;
    let uploaded: Vec<String> = sent.uploaded.iter().map(|one| one.run_id.to_string()).collect();
    assert_eq!((uploaded, sent.left), (runs.clone(), 0));
    assert!(outbox.pending().unwrap().is_empty());
    let kept: BTreeSet<String> = runs[3..].iter().map(|run| format!("{run}.json.zst")).collect();
    assert_eq!(names(&folder.path().join("sent")), kept);
}

#[tokio::test]
async fn what_the_server_refuses_for_good_is_kept_with_the_reason_and_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let receiver = Receiver::start(State::default());
    let (first, second) = (report(1), report(2));
    // The server has another report of the first run.
    outbox.keep(&Report { run_id: first.run_id, ..report(9) }).unwrap();
    send(&outbox, &receiver).await;
    outbox.keep(&first).unwrap();
    outbox.keep(&second).unwrap();
    std::fs::write(folder.path().join("00000000-0000-7000-8000-000000000000.json.zst"), "not gzip").unwrap();
    let sent = send(&outbox, &receiver).await;
    assert_eq!(sent.uploaded.iter().map(|one| one.run_id).collect::<Vec<_>>(), [second.run_id]);
    let [broken, other] = &sent.refused[..] else { panic!("{:?}", sent.refused) };
    assert!(broken.why.contains("not a report"), "{broken:?}");
    assert!(other.why.contains("Another report: of the same run is stored"), "{other:?}");
    assert_eq!(spool::read(&other.path).unwrap(), first);
    let reason = std::fs::read_to_string(folder.path().join(format!("refused/{}.txt", first.run_id))).unwrap();
    assert_eq!(reason.trim(), other.why);
}

#[tokio::test]
async fn a_token_that_is_refused_is_waited_for_and_a_stop_is_obeyed_at_once() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let run = report(1);
    outbox.keep(&run).unwrap();
    let receiver = Receiver::start(State { refuses: Some((401, json!({ "title": "No token" }))), ..State::default() });
    let server = Server::new(&receiver.address, None).unwrap();
    let (stop, stopped) = watch::channel(false);
    let sending = outbox.send_all(&server, stopped);
    let stopping = async {
        while receiver.state().seen.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.send(true).unwrap();
    };
    let both = async { tokio::join!(sending, stopping).0.unwrap() };
    let sent = tokio::time::timeout(Duration::from_secs(30), both).await.expect("it stops");
    assert_eq!((sent.uploaded.len(), sent.refused.len(), sent.left), (0, 0, 1));
    receiver.state().refuses = None;
    assert_eq!(send(&outbox, &receiver).await.uploaded.len(), 1);
}

#[tokio::test]
async fn a_report_that_the_token_does_not_reach_holds_no_other_up() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let (first, second) = (report(1), report(2));
    let waits = outbox.keep(&first).unwrap();
    outbox.keep(&second).unwrap();
    let receiver = Receiver::start(State { forbids: Some(first.run_id.to_string()), ..State::default() });
    let server = Server::new(&receiver.address, None).unwrap();
    let (stop, stopped) = watch::channel(false);
    let sending = outbox.send_all(&server, stopped);
    let stopping = async {
        while receiver.times(&second.run_id.to_string()) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.send(true).unwrap();
    };
    let both = async { tokio::join!(sending, stopping).0.unwrap() };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("it stops");
    assert!(outbox.pending().unwrap().contains(&waits), "it waits for another token");
    receiver.state().forbids = None;
    assert_eq!(send(&outbox, &receiver).await.left, 0);
    assert_eq!(receiver.times(&first.run_id.to_string()), 1);
}

#[tokio::test]
async fn what_a_proxy_refuses_is_sent_once_the_proxy_lets_it_through() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let run = report(1);
    outbox.keep(&run).unwrap();
    let receiver = Receiver::start(State { proxy: [413, 404, 400].into(), ..State::default() });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (_stop, stopped) = watch::channel(false);
    let server = Server::new(&receiver.address, None).unwrap();
    // As one that waits for the server only: it is away while its proxy answers.
    let sending = outbox.send_what_goes(&server, stopped);
    let sent = tokio::time::timeout(Duration::from_secs(60), sending).await.expect("it ends").unwrap();
    assert_eq!((sent.uploaded.len(), &sent.refused[..], sent.left), (1, &[][..], 0));
    assert_eq!((receiver.times(&run.run_id.to_string()), receiver.state().seen.len()), (1, 4));
}

#[tokio::test]
async fn what_the_server_itself_does_not_take_now_and_what_cannot_be_read_waits_and_holds_nothing_up() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let (first, second, third) = (report(1), report(2), report(3));
    let unreadable = outbox.keep(&first).unwrap();
    let kept = folder.path().join("kept");
    std::fs::rename(&unreadable, &kept).unwrap();
    // A file that is there, and whose first byte is an error of the device (EIO).
    std::os::unix::fs::symlink("/proc/self/mem", &unreadable).unwrap();
    let forbidden = outbox.keep(&second).unwrap();
    outbox.keep(&third).unwrap();
    let receiver = Receiver::start(State { forbids: Some(second.run_id.to_string()), ..State::default() });
    let server = Server::new(&receiver.address, None).unwrap();
    let (_stop, stopped) = watch::channel(false);
    let sending = outbox.send_what_goes(&server, stopped.clone());
    let sent = tokio::time::timeout(Duration::from_secs(30), sending).await.expect("it ends").unwrap();
    assert_eq!(sent.uploaded.iter().map(|one| one.run_id).collect::<Vec<_>>(), [third.run_id]);
    assert_eq!((&sent.refused[..], sent.left), (&[][..], 2));
    assert!(sent.why.unwrap().contains("cannot be read: Input/output error"));
    assert_eq!(outbox.pending().unwrap(), [unreadable.clone(), forbidden]);
    assert_eq!(outbox.projects().unwrap().into_iter().collect::<Vec<_>>(), [second.project]);

    std::fs::rename(kept, unreadable).unwrap();
    receiver.state().forbids = None;
    assert_eq!(send(&outbox, &receiver).await.uploaded.len(), 2);
}

/// Says which reports it keeps and sends them, as a process of its own.
#[tokio::test]
#[ignore = "run by the tests below as a process of its own"]
async fn child() {
    let variable = |name: &str| std::env::var(name).expect("the tests below set it");
    let outbox = Outbox::open(Path::new(&variable("OUTBOX"))).unwrap();
    let receiver_address = variable("RECEIVER");
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!();
    for number in 0..variable("REPORTS").parse().unwrap() {
        let report = report(number);
        outbox.keep(&report).unwrap();
        println!("kept {}", report.run_id);
        std::io::stdout().flush().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let server = Server::new(&receiver_address, None).unwrap();
        outbox.send_all(&server, stopped).await.unwrap();
    }
    let (_stop, stopped) = watch::channel(false);
    outbox.send_all(&Server::new(&receiver_address, None).unwrap(), stopped).await.unwrap();
}

fn start(folder: &Path, receiver: &Receiver, reports: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kept::child", "--ignored", "--nocapture"])
        .env("OUTBOX", folder)
        .env("RECEIVER", &receiver.address)
        .env("REPORTS", reports.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kept(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("kept ").map(str::to_owned))
}

#[test]
fn killed_at_any_moment_it_loses_nothing_that_it_took() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(State::default());
    let mut taken = BTreeSet::new();
    let mut chance: u64 = 7;
    for round in 0..20 {
        let mut child = start(folder.path(), &receiver, 1_000);
        let mut said = kept(&mut child);
        taken.extend(said.by_ref().take(round % 3 + 1));
        // Somewhere between one report and the next.
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros(chance >> 50));
        child.kill().unwrap();
        child.wait().unwrap();
        taken.extend(said);
        for run in &taken {
            let name = format!("{run}.json.zst");
            let places = [folder.path().join(&name), folder.path().join("sent").join(&name)];
            let places = places.iter().filter(|place| place.exists()).count();
            let arrived = receiver.times(run) > 0;
            assert!(places == 1 || (places == 0 && arrived), "round {round}: {run} is in {places} places, {arrived}");
        }
    }
    assert!(start(folder.path(), &receiver, 0).wait().unwrap().success());
    assert!(taken.iter().all(|run| receiver.times(run) > 0), "all arrived");
    let left = names(folder.path());
    assert!(left.iter().all(|name| name.ends_with(".lock")), "nothing half written, nothing that waits: {left:?}");
    assert!(names(&folder.path().join("refused")).is_empty());
}

#[test]
fn two_processes_on_one_folder_send_each_report_once() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(State::default());
    let mut children = [(); 2].map(|()| start(folder.path(), &receiver, 8));
    let taken: Vec<String> = children.iter_mut().map(kept).flat_map(Iterator::collect::<Vec<_>>).collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(taken.len(), 16);
    for run in &taken {
        assert_eq!(receiver.times(run), 1, "{run}");
    }
    wait_for("an empty outbox", || names(folder.path()).iter().all(|name| name.ends_with(".lock")).then_some(()));
}
