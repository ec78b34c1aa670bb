//! What is asked about a repository.

use plimsoll_server::github::Error;
use plimsoll_server::github::answers::{Files, Permission, Required};
use uuid::Uuid;

use super::super::fake::{APP, CheckRun, FakeGitHub, Fault};
use super::{count, sha};

#[tokio::test]
async fn a_pull_request_is_read_with_whose_it_is() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = github.model().push(id, "faster", &[("src/main.rs", Some("fn main() {}"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    let pull = client.at(&place).pull(number).await.unwrap();
    assert_eq!((pull.number, pull.head_sha, pull.head_ref.as_str()), (number, sha(&head), "faster"));
    assert_eq!((pull.open, pull.draft, pull.fork, pull.author.as_deref()), (true, false, false, Some("mona")));
    let base = client.at(&place).branch("main").await.unwrap().unwrap();
    assert_eq!((pull.base_ref.as_str(), &pull.base_sha), ("main", &base.head));
    assert_eq!(pull.updated_at, github.model().repo(id).pulls[&number].updated_at);
    for (repository, author) in [(Some(7), Some("stranger")), (None, None)] {
        let mut model = github.model();
        let pull = model.repo(id).pulls.get_mut(&number).unwrap();
        (pull.head_repository, pull.author, pull.draft) = (repository, author.map(str::to_owned), true);
        drop(model);
        let pull = client.at(&place).pull(number).await.unwrap();
        assert!(pull.fork && pull.draft && pull.author.as_deref() == author, "{pull:?}");
    }
    assert_eq!(client.at(&place).pull(99).await.unwrap_err(), Error::Missing);
    github.model().repo(id).pulls.get_mut(&number).unwrap().open = false;
    assert!(client.at(&place).open_pulls().await.unwrap().is_empty());
    github.end();
}

#[tokio::test]
async fn files_come_with_both_names_and_say_whether_they_are_all() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    github.model().push(id, "main", &[("old.rs", Some("one")), ("gone.rs", Some("two"))]);
    let changes = [("old.rs", None), ("new.rs", Some("one")), ("gone.rs", None), ("README.md", Some("more"))];
    let head = github.model().push(id, "faster", &changes);
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    let files = client.at(&place).pull_files(number).await.unwrap();
    let paths = ["README.md", "gone.rs", "new.rs", "old.rs"].map(str::to_owned).to_vec();
    assert_eq!(files, Files { paths: paths.clone(), complete: true });
    github.model().push(id, "main", &[("later.rs", Some("three"))]);
    let compared = client.at(&place).compare("main", &head).await.unwrap();
    assert_eq!((compared.ahead, compared.behind, compared.files), (1, 1, Files { paths, complete: true }));
    assert_eq!(client.at(&place).compare("main", "none").await.unwrap_err(), Error::Missing);

    for (files, listed, complete) in [(250, 250, true), (3_001, 3_000, false)] {
        let branch = format!("wide-{files}");
        let names: Vec<String> = (0..files).map(|n| format!("data/{n}.txt")).collect();
        let changes: Vec<(&str, Option<&str>)> =
            names.iter().map(|name| (name.as_str(), Some(name.as_str()))).collect();
        let head = github.model().push(id, &branch, &changes);
        let number = github.model().open_pull(id, &branch, "mona");
        let files = client.at(&place).pull_files(number).await.unwrap();
        assert_eq!((files.paths.len(), files.complete), (listed, complete), "{branch}");
        let compared = client.at(&place).compare("main", &head).await.unwrap();
        assert_eq!(compared.files.complete, listed < 300, "{branch}");
    }
    github.end();
}

#[tokio::test]
async fn tags_lead_to_commits() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let commit = github.model().push(id, "main", &[("a", Some("1"))]);
    github.model().tag(id, "v1.0.0", &commit, false);
    let object = github.model().tag(id, "model/v2 #1", &commit, true);
    github.model().tag(id, "signed", &object, true);
    github.model().tag(id, "lost", &"0".repeat(40), true);
    let client = github.client();
    for tag in ["v1.0.0", "model/v2 #1", "signed"] {
        assert_eq!(client.at(&place).tag_commit(tag).await.unwrap(), Some(sha(&commit)), "{tag}");
    }
    assert_eq!(client.at(&place).tag_commit("v9").await.unwrap(), None);
    github.model().repo(id).tags.remove("lost");
    for n in 0..120 {
        github.model().tag(id, &format!("v0.{n}.0"), &commit, false);
    }
    let tags = client.at(&place).tags().await.unwrap();
    assert_eq!((tags.len(), count(&github, "GET /ranker/tags")), (123, 2));
    assert!(tags.iter().all(|(_, to)| *to == sha(&commit)));
    github.end();
}

#[tokio::test]
async fn a_branch_says_what_a_merge_waits_for() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let client = github.client();
    let branch = client.at(&place).branch("main").await.unwrap().unwrap();
    assert_eq!(branch.required, []);
    let checks = |names: &[(&str, Option<i64>)]| names.iter().map(|(name, app)| ((*name).to_owned(), *app)).collect();
    github.model().repo(id).protection.insert("main".to_owned(), checks(&[("build", None), ("lint", Some(-1))]));
    github
        .model()
        .repo(id)
        .rulesets
        .insert("main".to_owned(), checks(&[("plimsoll/ranker", Some(APP)), ("build", None)]));
    let branch = client.at(&place).branch("main").await.unwrap().unwrap();
    let required = |check: &str, app_id| Required { check: check.to_owned(), app_id };
    let all = [required("build", None), required("lint", None), required("plimsoll/ranker", Some(APP))];
    assert_eq!(branch.required, all);
    assert!(branch.requires("plimsoll/ranker", APP) && branch.requires("build", APP));
    assert!(!branch.requires("plimsoll/ranker", APP + 1) && !branch.requires("plimsoll", APP));
    for fault in [Fault::Unpaid, Fault::Missing] {
        github.fail("/rules/", fault, 1);
        let branch = client.at(&place).branch("main").await.unwrap().unwrap();
        assert_eq!(branch.required, all[..2], "{fault:?}");
    }
    github.fail("/rules/", Fault::Broken, 1);
    assert!(client.at(&place).branch("main").await.unwrap_err().passes(), "nobody knows then");
    let deep = github.model().push(id, "team/deep branch", &[]);
    assert_eq!(client.at(&place).branch("team/deep branch").await.unwrap().unwrap().head, sha(&deep));
    assert_eq!(client.at(&place).branch("none").await.unwrap(), None);
    github.end();
}

#[tokio::test]
async fn a_file_is_read_as_it_was() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let text = "[project]\nslug = \"ränker\"\n".repeat(20);
    let long = "x".repeat(600 << 10);
    let first = github.model().push(id, "main", &[("bench/plimsoll.toml", Some(&text)), ("long", Some(&long))]);
    github.model().push(id, "main", &[("bench/plimsoll.toml", Some("")), ("longer", Some(&long.repeat(2)))]);
    let client = github.client();
    let file = async |path: &str, at: &str| client.at(&place).file(path, at).await;
    assert_eq!(file("bench/plimsoll.toml", &first).await.unwrap().as_deref(), Some(text.as_str()));
    assert_eq!(file("bench/plimsoll.toml", "main").await.unwrap().as_deref(), Some(""));
    for (path, at) in [("none", "main"), ("bench", "main"), ("README.md", "none"), ("../ranker/README.md", "main")] {
        assert_eq!(file(path, at).await.unwrap(), None, "{path} at {at}");
    }
    for path in ["long", "longer"] {
        let refused = file(path, "main").await.unwrap_err().to_string();
        assert!(refused.contains(&format!("{path} is longer than 512 KiB")), "{refused}");
    }
    github.end();
}

#[tokio::test]
async fn rights_are_those_that_github_tells() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let roles = ["admin", "maintain", "write", "triage", "read"];
    github.model().repo(id).roles = roles.map(|role| (role.to_owned(), role.to_owned())).into();
    github.model().unknown_logins.insert("ghost".to_owned());
    let client = github.client();
    let may = async |login: &str| client.at(&place).permission(login).await.unwrap();
    for (login, permission) in [
        ("admin", Permission::Admin),
        ("maintain", Permission::Write),
        ("write", Permission::Write),
        ("triage", Permission::Read),
        ("read", Permission::Read),
        ("stranger", Permission::Read),
        ("ghost", Permission::None),
        ("../../app", Permission::Read),
    ] {
        assert_eq!(may(login).await, permission, "{login}");
    }
    assert!(Permission::Admin.can_write() && Permission::Write.can_write() && !Permission::Read.can_write());
    github.model().repo(id).private = true;
    assert_eq!(may("stranger").await, Permission::None);
    github.end();
}

#[tokio::test]
async fn a_check_is_found_on_any_page_and_only_if_it_is_ours() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = github.model().push(id, "main", &[("a", Some("1"))]);
    let name = "plimsoll/ranker";
    let (ours, foreign) = (Uuid::now_v7(), Uuid::now_v7());
    for number in 0..250 {
        let (app_id, external_id) = match number {
            3 => (APP, ours),
            77 => (APP + 1, foreign),
            _ => (APP, Uuid::now_v7()),
        };
        let check = CheckRun {
            id: number,
            app_id,
            name: name.to_owned(),
            head_sha: head.clone(),
            external_id: external_id.to_string(),
            ..CheckRun::default()
        };
        github.model().repo(id).checks.insert(number, check);
    }
    let client = github.client();
    let find = async |name: &str, external_id| client.at(&place).find_check(&sha(&head), name, external_id).await;
    assert_eq!(find(name, ours).await.unwrap(), Some(3));
    assert_eq!(count(&github, "GET /check-runs"), 3, "of 250 there are three pages");
    assert_eq!(find(name, foreign).await.unwrap(), None);
    assert_eq!(find("plimsoll/other", ours).await.unwrap(), None);
    github.end();
}

#[tokio::test]
async fn every_comment_is_read() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    github.model().push(id, "faster", &[("a", Some("1"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    for n in 0..230 {
        github.model().comment(id, number, "mona", &format!("comment {n}"));
    }
    let client = github.client();
    let ours = client.at(&place).create_comment(number, "ours").await.unwrap();
    github.take_writes();
    let comments = client.at(&place).comments(number).await.unwrap();
    let (first, last) = (&comments[0], &comments[230]);
    assert_eq!((first.login.as_deref(), first.app_id, first.body.as_str()), (Some("mona"), None, "comment 0"));
    assert_eq!((last.id, last.app_id, last.body.as_str()), (ours, Some(APP), "ours"));
    assert_eq!(comments.len(), 231);
    github.end();
}

#[tokio::test]
async fn a_repository_with_a_new_name_is_found_by_the_old_one() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = github.model().push(id, "faster", &[("a", Some("1"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    github.model().rename(id, "octo/reranker");
    let client = github.client();
    assert_eq!(client.at(&place).pull(number).await.unwrap().head_sha, sha(&head));
    let comment = client.at(&place).create_comment(number, "found").await.unwrap();
    assert_eq!(github.model().repo(id).comments[&comment].body, "found");
    let writes = github.take_writes();
    assert_eq!(
        writes,
        [
            format!("POST issues/{number}/comments → 307"),
            format!("POST /repositories/{id}/issues/{number}/comments → 201"),
        ]
    );
    github.end();
}
