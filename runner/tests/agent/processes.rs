//! Nothing of a run outlives it: daemons, hung commands, killed agents.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use plimsoll_domain::job::Stage;
use plimsoll_runner::spool;
use serde_json::json;

use super::server::{Claimed, Server};
use super::setup::{Bench, lives, running, wait_for};

/// A service that leaves daemons behind: in a session of its own, in one without the run's environment, and one that
/// will not end when it is asked.
const DAEMONS: &str = r#"start = '''
setsid sh -c 'echo $$ > "$ROOT/daemon"; exec sleep 1000' &
env -i "ROOT=$ROOT" /usr/bin/setsid sh -c 'echo $$ > "$ROOT/stranger"; exec sleep 1000' &
(setsid sh -c 'trap "" TERM; echo $$ > "$ROOT/stubborn"; while :; do sleep 1; done' &)
exec "$SERVICE" service --exact --ignored
'''
"#;

fn daemons(bench: &Bench) -> [String; 3] {
    let pids = ["daemon", "stranger", "stubborn"].map(|name| bench.read(name));
    for pid in &pids {
        assert!(lives(pid), "{pid}");
    }
    pids
}

fn wait_until_gone(pids: &[String]) {
    for pid in pids {
        wait_for(&format!("the end of {pid}"), || (!lives(pid)).then_some(()));
    }
}

#[test]
fn daemons_end_with_the_run_they_belong_to() {
    let server = Server::start();
    let bench = Bench::new(&server, DAEMONS);
    bench.take("5s");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&["--once"]);
    let pids = daemons(&bench);
    server.wait_for_report();
    assert_eq!(agent.wait().0, Some(0));
    for pid in &pids {
        assert!(!lives(pid), "{pid} outlives its run: {}", bench.log());
    }
}

#[test]
fn a_killed_agent_leaves_nothing_and_the_next_one_goes_on() {
    let server = Server::start();
    let bench = Bench::new(&server, DAEMONS);
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Staircase);
    let pids = daemons(&bench);
    let supervisor = running(&bench)["supervisor"]["pid"].to_string();
    let measured = bench.at(&format!("state/logs/{}.partial.json", bench.run));
    let phases = || spool::read(&measured).map(|report| report.phases.len()).unwrap_or_default();
    wait_for("the finished phases", || (phases() == 2).then_some(()));
    agent.kill();
    wait_until_gone(&pids);
    wait_until_gone(&[supervisor]);

    bench.take("1s");
    server.give(Claimed::Job(bench.job()));
    let (code, _) = bench.agent(&["--once"]).wait();
    assert_eq!(code, Some(0));
    server.wait_for_report();
    assert!(!measured.exists(), "the report has taken its place");
    assert!(bench.log().contains("cleaning up after it"), "{}", bench.log());
}

#[test]
fn what_agent_and_supervisor_left_when_both_were_killed_ends_at_the_next_start() {
    let server = Server::start();
    let bench = Bench::new(&server, DAEMONS);
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Staircase);
    let pids = daemons(&bench);
    let supervisor = running(&bench)["supervisor"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(supervisor as i32).unwrap();
    agent.signal(rustix::process::Signal::STOP);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    agent.kill();
    assert!(lives(&pids[0]), "nobody has ended it yet");
    let agent = bench.agent(&[]);
    // The stranger has shed every sign of where it came from.
    wait_until_gone(&[pids[0].clone(), pids[2].clone()]);
    wait_for("the file", || (!bench.at("state/running.json").exists()).then_some(()));
    drop(agent);
    let stranger = rustix::process::Pid::from_raw(pids[1].trim().parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(stranger, rustix::process::Signal::KILL);
}

#[test]
fn a_killed_supervisor_takes_nothing_with_it() {
    let server = Server::start();
    let bench = Bench::new(&server, DAEMONS);
    bench.take("5s");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&["--once"]);
    server.wait_for_stage(Stage::Staircase);
    let pids = daemons(&bench);
    let supervisor = running(&bench)["supervisor"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(supervisor as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    server.wait_for_report();
    assert_eq!(agent.wait().0, Some(0));
    for pid in &pids {
        assert!(!lives(pid), "{pid} outlives its run: {}", bench.log());
    }
}

/// Its first thread has ended, and so it looks over, but another goes on until there is a file.
const LINGERER: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *wait_for(void *path) { while (access(path, F_OK)) usleep(20000); return 0; }
int main(int count, char **words) {
    pthread_t thread;
    if (count < 2 || pthread_create(&thread, 0, wait_for, words[1])) return 1;
    pthread_exit(0);
}
"#;

#[test]
fn what_falls_to_an_idle_agent_is_fetched_when_it_is_over() {
    let server = Server::start();
    let start = "start = '\"$ROOT/lingerer\" \"$ROOT/end\" & echo $! > \"$ROOT/pid\"; exec \"$SERVICE\" service --exact --ignored'\n";
    let bench = Bench::new(&server, start);
    std::fs::write(bench.at("lingerer.c"), LINGERER).unwrap();
    let made =
        Command::new("cc").arg(bench.at("lingerer.c")).arg("-pthread").arg("-o").arg(bench.at("lingerer")).status();
    assert!(made.unwrap().success());
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    let pid = bench.read("pid").trim().to_owned();
    server.wait_for_report();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let mark = format!(") Z {} ", agent.id());
    wait_for("the agent's adoption", || stat().is_some_and(|stat| stat.contains(&mark)).then_some(()));
    // It has come to rest, and asks for jobs.
    server.wait_for_claims(server.asked().len() + 2);
    assert!(stat().is_some(), "it is not over yet");
    std::fs::write(bench.at("end"), "").unwrap();
    wait_for("its end", || stat().is_none().then_some(()));
    drop(agent);
}

#[test]
fn a_stop_command_that_hangs_is_ended() {
    let server = Server::start();
    let recipe = "stop = { command = 'echo $$ > \"$ROOT/stop\"; sleep 1000', timeout = \"300ms\" }\n";
    let bench = Bench::new(&server, recipe);
    server.give(Claimed::Job(bench.job()));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    server.wait_for_report();
    assert!(!lives(&bench.read("stop")));
    assert!(bench.log().contains("`stop` did not end within 300ms"), "{}", bench.log());
}

#[test]
fn while_something_of_the_last_run_lives_it_is_not_forgotten_and_no_job_is_taken() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let is_root = rustix::process::geteuid().is_root();
    // A process of another user: the agent sees it and may not end it.
    let mut other = is_root.then(|| Command::new("sleep").arg("1000").process_group(0).spawn().unwrap());
    let pid = other.as_ref().map_or(1, Child::id);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started: u64 = stat[stat.rfind(')').unwrap() + 2..].split(' ').nth(19).unwrap().parse().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let left = json!({ "run": bench.run, "project": "test", "boot": boot.trim(), "supervisor": null,
        "service": { "pid": pid, "started": started } });
    std::fs::create_dir(bench.at("state")).unwrap();
    std::fs::write(bench.at("state/running.json"), left.to_string()).unwrap();
    let agent = bench.agent_with(&[], |command| {
        if is_root {
            const NOBODY: u32 = 65_534;
            for name in ["", "state", "token"] {
                std::os::unix::fs::chown(bench.at(name), Some(NOBODY), None).unwrap();
            }
            command.uid(NOBODY);
        }
    });
    wait_for("the agent's word", || bench.log().contains("no job is taken: 1 processes of run").then_some(()));
    assert!(bench.at("state/running.json").exists() && server.asked().is_empty());
    match &mut other {
        Some(other) => {
            other.kill().unwrap();
            other.wait().unwrap();
        }
        // Nobody ends the first process: say that it has nothing to do with the run.
        None => std::fs::remove_file(bench.at("state/running.json")).unwrap(),
    }
    server.wait_for_claims(1);
    assert!(!bench.at("state/running.json").exists());
    drop(agent);
}
