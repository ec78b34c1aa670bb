//! What git is told by the files that a service can write, by a network that fails, and by what a killed git left.

use std::fs;
use std::net::TcpListener;

use plimsoll_domain::job::Ending;
use plimsoll_domain::report::Report;

use super::server::{Claimed, Server};
use super::setup::{Bench, wait_for};

const SERVE: &str = "exec \"$SERVICE\" service --exact --ignored";

/// One job, measured by an agent of its own, whose server has given it nothing before.
fn measured(bench: &Bench, recipe: &str) -> Report {
    let server = Server::start();
    bench.configure(&server, recipe);
    server.give(Claimed::Job(bench.job()));
    let (code, done) = bench.agent(&["--once"]).wait();
    assert_eq!(code, Some(0), "{done}");
    assert!(server.ended().is_empty(), "{:?}", server.ended());
    server.wait_for_report()
}

#[test]
fn a_service_that_tells_git_what_to_run_is_not_heard() {
    let bench = Bench::new(&Server::start(), "");
    let first = bench.git(&["rev-parse", "HEAD"]);
    bench.commit(".gitattributes", "* filter=planted\n");
    bench.git(&["tag", "--force", "v1.0.0"]);
    let plant = r#"for how in clean smudge; do
            git config "filter.planted.$how" "env > $ROOT/ran; cat"
            git config --file "$(git rev-parse --git-common-dir)/config" "filter.planted.$how" "env > $ROOT/ran; cat"
        done
        git config core.fsmonitor "env > $ROOT/ran"
        echo "* filter=planted" > .gitattributes
        echo >> plimsoll.toml
        echo > "$ROOT/planted""#;
    let recipe = format!("start = '''\n{plant}\n{SERVE}\n'''\n");
    for _ in 0..2 {
        let report = measured(&bench, &recipe);
        bench.read("planted");
        assert_eq!(report.revision.ancestors.iter().map(ToString::to_string).collect::<Vec<_>>(), [first.trim()]);
        assert!(!report.revision.dirty);
        assert!(!bench.at("ran").exists(), "{}", fs::read_to_string(bench.at("ran")).unwrap());
    }
}

#[test]
fn settings_that_never_end_hold_no_job_up() {
    let bench = Bench::new(&Server::start(), "");
    let plant = r#"common="$(git rev-parse --git-common-dir)"
        rm "$common/config" && mkfifo "$common/config"
        rm .git && git init --quiet . && rm .git/config && mkfifo .git/config && echo > "$ROOT/planted""#;
    let recipe = format!("start = '''\n{plant}\n{SERVE}\n'''\n");
    for _ in 0..2 {
        assert!(measured(&bench, &recipe).revision.commit.is_some());
        bench.read("planted");
        fs::remove_file(bench.at("planted")).unwrap();
    }
}

#[test]
fn a_folder_tells_its_history_and_is_not_heard_either() {
    let bench = Bench::new(&Server::start(), "");
    let folder = bench.at("repository");
    let recipe = format!("directory = {folder:?}\n");
    let head = bench.git(&["rev-parse", "HEAD"]);
    assert!(!measured(&bench, &recipe).revision.dirty);
    bench.git(&["config", "filter.a=b.clean", &format!("env > {}; cat", bench.at("ran").display())]);
    bench.git(&["config", "filter.a=b.required", "true"]);
    fs::write(folder.join(".git/info/attributes"), "* filter=a=b\n").unwrap();
    fs::write(folder.join("plimsoll.toml"), bench.plan() + "\n").unwrap();
    let revision = measured(&bench, &recipe).revision;
    assert_eq!((revision.commit.unwrap().as_str(), revision.branch.as_deref()), (head.trim(), Some("main")));
    assert!(revision.dirty);
    assert!(!bench.at("ran").exists(), "{}", fs::read_to_string(bench.at("ran")).unwrap());
}

#[test]
fn settings_of_a_folder_that_never_end_hold_no_job_up() {
    let bench = Bench::new(&Server::start(), "");
    let folder = bench.at("repository");
    let recipe = format!("directory = {folder:?}\n");
    assert!(measured(&bench, &recipe).revision.commit.is_some());
    let config = folder.join(".git/config");
    fs::remove_file(&config).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(measured(&bench, &recipe).revision.commit, None);
}

#[test]
fn a_lock_that_a_killed_git_left_is_got_over() {
    let bench = Bench::new(&Server::start(), "");
    bench.git(&["branch", "passing"]);
    measured(&bench, "");
    let kept = bench.at("state/repositories/test.git");
    fs::write(kept.join("packed-refs.lock"), "").unwrap();
    bench.git(&["branch", "--quiet", "-D", "passing"]);
    measured(&bench, "");
    assert!(bench.log().contains("the repository is fetched anew"), "{}", bench.log());
    assert!(!kept.join("packed-refs.lock").exists());
}

#[test]
fn a_repository_that_does_not_answer_is_no_fault_of_the_revision() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bench.configure(&server, &format!("repository = \"git://{nobody}/test.git\"\n"));
    server.give(Claimed::Job(bench.job()));
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    let ended = server.wait_for_end();
    assert_eq!(ended.how, Ending::Released, "{}", ended.reason);
    assert!(ended.reason.contains("`git fetch` ended with"), "{}", ended.reason);
    wait_for("the rest", || bench.log().contains("no job is taken for a while").then_some(()));
    assert_eq!((server.asked().len(), server.ended().len()), (1, 1), "it does not come back at once");
    server.wait_for_claims(2);
    drop(agent);
}
