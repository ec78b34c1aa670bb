//! Every event that GitHub sends, and those that it may send one day, come out as what this server makes of them.

use plimsoll_server::github::events::{
    Change, CheckAction, CheckRun, CheckSuite, Comment, Event, Installation, InstallationAction, MergeAction,
    MergeGroup, PullAction, PullRequest, Push, Repositories, Repository, RepositoryChange, Sender, Tag, read,
};
use serde_json::{Value, json};

use super::payloads::*;

const CHECK: &str = "01890000-0000-7000-8000-000000000000";

/// A name, the event, the payload, and what it is read as.
pub(super) fn table() -> Vec<(&'static str, &'static str, Value, Event)> {
    let mut table = Vec::new();
    table.extend(pushes());
    table.extend(tags());
    table.extend(pulls());
    table.extend(checks());
    table.extend(comments());
    table.extend(places());
    table.extend(ignored());
    table
}

#[test]
fn every_payload_is_read_as_what_it_says() {
    let table = table();
    assert!(table.len() > 60, "{}", table.len());
    for (name, event, payload, wanted) in table {
        assert_eq!(read(event, payload.to_string().as_bytes()), Ok(wanted), "{name}");
    }
}

/// Whatever is cut out of a payload, or set to null, it is read or it is not, and nothing panics.
#[test]
fn payloads_with_holes_are_read_or_not() {
    for (name, event, payload, _) in table() {
        for path in paths(&payload, String::new()) {
            for hole in [Value::Null, json!("?"), json!(-1), json!([]), json!({})] {
                let mut holed = payload.clone();
                *holed.pointer_mut(&path).expect("a path of it") = hole;
                if let Err(why) = read(event, holed.to_string().as_bytes()) {
                    assert!(why.to_string().len() < 400, "{name} {path}: {why}");
                }
            }
        }
        let whole = payload.to_string();
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            let _ = read(event, &whole.as_bytes()[..cut]);
        }
    }
}

fn paths(value: &Value, under: String) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(keys) => keys.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(key, value)| paths(value, format!("{under}/{key}")));
    std::iter::once(under.clone()).chain(below).collect()
}

type Case = (&'static str, &'static str, Value, Event);

fn seen() -> Repository {
    Repository {
        id: REPOSITORY,
        full_name: "octo/service".to_owned(),
        default_branch: Some("main".to_owned()),
        private: true,
        installation: Some(INSTALLATION),
        owner: "octo".to_owned(),
    }
}

fn briefly(id: i64, full_name: &str) -> Repository {
    let owner = full_name.split('/').next().unwrap().to_owned();
    Repository { id, full_name: full_name.to_owned(), default_branch: None, private: false, owner, ..seen() }
}

fn sender(login: &str) -> Sender {
    Sender { login: login.to_owned(), is_bot: login.ends_with("[bot]") }
}

fn pushes() -> Vec<Case> {
    let push_to = |branch: &str, before: Option<&str>, head_commit: Option<&str>| Push {
        repository: seen(),
        branch: branch.to_owned(),
        before: before.map(|sha| sha.parse().unwrap()),
        after: HEAD.parse().unwrap(),
        head_commit: head_commit.map(|sha| sha.parse().unwrap()),
        forced: false,
    };
    let mut forced = push("refs/heads/main", BASE, HEAD, Some(HEAD));
    with(&mut forced, json!({ "forced": true }));
    let mut hook = push("refs/heads/main", BASE, HEAD, Some(HEAD));
    hook.as_object_mut().unwrap().remove("installation");
    let by_hook =
        Push { repository: Repository { installation: None, ..seen() }, ..push_to("main", Some(BASE), Some(HEAD)) };
    vec![
        (
            "a push",
            "push",
            push("refs/heads/main", BASE, HEAD, Some(HEAD)),
            Event::Push(push_to("main", Some(BASE), Some(HEAD))),
        ),
        (
            "a new branch",
            "push",
            push("refs/heads/a/b", NONE, HEAD, Some(HEAD)),
            Event::Push(push_to("a/b", None, Some(HEAD))),
        ),
        (
            "no head commit",
            "push",
            push("refs/heads/main", BASE, HEAD, None),
            Event::Push(push_to("main", Some(BASE), None)),
        ),
        ("by force", "push", forced, Event::Push(Push { forced: true, ..push_to("main", Some(BASE), Some(HEAD)) })),
        ("without an App", "push", hook, Event::Push(by_hook)),
        ("a deleted branch", "push", push("refs/heads/x", BASE, NONE, None), Event::Ignored("a branch was deleted")),
        ("a note", "push", push("refs/notes/x", BASE, HEAD, None), Event::Ignored("neither a branch nor a tag")),
    ]
}

fn tags() -> Vec<Case> {
    let tag = |tag: &str, commit: Option<&str>, deleted: bool| {
        Event::Tag(Tag {
            repository: seen(),
            tag: tag.to_owned(),
            commit: commit.map(|sha| sha.parse().unwrap()),
            deleted,
        })
    };
    let mut renamed = release("edited", "v1.2.0", false);
    with(&mut renamed, json!({ "changes": { "tag_name": { "from": "v1.2.0-rc.1" }, "body": { "from": "x" } } }));
    let mut reworded = release("edited", "v1.2.0", false);
    with(&mut reworded, json!({ "changes": { "body": { "from": "x" } } }));
    let announces_none = || Event::Ignored("a release that announces no tag");
    vec![
        ("a light tag", "push", push("refs/tags/v1.2.0", NONE, HEAD, Some(HEAD)), tag("v1.2.0", Some(HEAD), false)),
        (
            "an annotated tag",
            "push",
            push("refs/tags/v1.2.0", NONE, TAG_OBJECT, Some(HEAD)),
            tag("v1.2.0", Some(HEAD), false),
        ),
        ("a moved tag", "push", push("refs/tags/v1.2.0", BASE, HEAD, Some(HEAD)), tag("v1.2.0", Some(HEAD), false)),
        (
            "slashes",
            "push",
            push("refs/tags/rel/2026/v1", NONE, HEAD, Some(HEAD)),
            tag("rel/2026/v1", Some(HEAD), false),
        ),
        ("a tag of unknown commit", "push", push("refs/tags/v1", NONE, TAG_OBJECT, None), tag("v1", None, false)),
        ("a deleted tag", "push", push("refs/tags/v1", HEAD, NONE, None), tag("v1", None, true)),
        ("create", "create", reference("v1.2.0", "tag"), tag("v1.2.0", None, false)),
        ("delete", "delete", reference("v1.2.0", "tag"), tag("v1.2.0", None, true)),
        ("create a branch", "create", reference("x", "branch"), Event::Ignored("a branch: its push says the same")),
        ("delete a branch", "delete", reference("x", "branch"), Event::Ignored("a branch: its push says the same")),
        ("release created", "release", release("created", "v1.2.0", false), tag("v1.2.0", None, false)),
        ("release published", "release", release("published", "v1.2.0", false), tag("v1.2.0", None, false)),
        ("release released", "release", release("released", "v1.2.0", false), tag("v1.2.0", None, false)),
        ("a pre-release", "release", release("prereleased", "v1.2.0", false), tag("v1.2.0", None, false)),
        ("another tag", "release", renamed, tag("v1.2.0", None, false)),
        ("other words", "release", reworded, announces_none()),
        ("a deleted release", "release", release("deleted", "v1.2.0", false), announces_none()),
        ("an unknown action", "release", release("sung", "v1.2.0", false), announces_none()),
        ("a draft", "release", release("created", "untagged-1", true), Event::Ignored("a release that is a draft")),
    ]
}

fn pulls() -> Vec<Case> {
    let pull = |action: PullAction| PullRequest {
        repository: seen(),
        number: 7,
        action,
        head_sha: HEAD.parse().unwrap(),
        head_ref: "faster".to_owned(),
        base_ref: "main".to_owned(),
        base_sha: BASE.parse().unwrap(),
        fork: false,
        draft: false,
        open: true,
        updated_at: "2026-03-01T10:00:00Z".parse().unwrap(),
        author: Some("mona".to_owned()),
    };
    let same = |action: PullAction| Event::PullRequest(pull(action));
    let head = |repo: Value| json!({ "head": { "ref": "faster", "sha": HEAD, "user": null, "repo": repo } });
    let fork = || Event::PullRequest(PullRequest { fork: true, ..pull(PullAction::Opened) });
    let mut rebased = pull_request("edited", json!({}));
    with(&mut rebased, json!({ "changes": { "base": { "ref": { "from": "old" }, "sha": { "from": HEAD } } } }));
    let mut retitled = pull_request("edited", json!({}));
    with(&mut retitled, json!({ "changes": { "title": { "from": "old" } } }));
    let closed = |merged| PullRequest { open: false, ..pull(PullAction::Closed { merged }) };
    let hostile = json!({ "title": "`x` | @team <script>", "body": "x".repeat(65_536),
                          "head": { "ref": "a|b`c<d>${{e}}", "sha": HEAD, "repo": repository() } });
    let ghost = PullRequest { author: None, ..pull(PullAction::Opened) };
    let group = |action: MergeAction| {
        Event::MergeGroup(MergeGroup {
            repository: seen(),
            action,
            head_sha: HEAD.parse().unwrap(),
            head_ref: format!("gh-readonly-queue/main/pr-7-{BASE}"),
            base_sha: BASE.parse().unwrap(),
            base_ref: "main".to_owned(),
        })
    };
    vec![
        ("opened", "pull_request", pull_request("opened", json!({})), same(PullAction::Opened)),
        ("reopened", "pull_request", pull_request("reopened", json!({})), same(PullAction::Reopened)),
        ("pushed to", "pull_request", pull_request("synchronize", json!({})), same(PullAction::Synchronize)),
        ("ready", "pull_request", pull_request("ready_for_review", json!({})), same(PullAction::ReadyForReview)),
        (
            "a draft",
            "pull_request",
            pull_request("converted_to_draft", json!({ "draft": true })),
            Event::PullRequest(PullRequest { draft: true, ..pull(PullAction::ConvertedToDraft) }),
        ),
        ("another base", "pull_request", rebased, same(PullAction::BaseChanged)),
        ("another title", "pull_request", retitled, Event::Ignored("another title or text")),
        (
            "closed",
            "pull_request",
            pull_request("closed", json!({ "state": "closed" })),
            Event::PullRequest(closed(false)),
        ),
        (
            "merged",
            "pull_request",
            pull_request("closed", json!({ "state": "closed", "merged": true, "merge_commit_sha": TAG_OBJECT })),
            Event::PullRequest(closed(true)),
        ),
        ("no repository", "pull_request", pull_request("opened", head(Value::Null)), fork()),
        ("a fork", "pull_request", pull_request("opened", head(brief_repository(8, "eve/service"))), fork()),
        ("a ghost", "pull_request", pull_request("opened", json!({ "user": null })), Event::PullRequest(ghost)),
        (
            "hostile",
            "pull_request",
            pull_request("opened", hostile),
            Event::PullRequest(PullRequest { head_ref: "a|b`c<d>${{e}}".to_owned(), ..pull(PullAction::Opened) }),
        ),
        (
            "a label",
            "pull_request",
            pull_request("labeled", json!({})),
            Event::Ignored("nothing that changes what is measured"),
        ),
        ("a group", "merge_group", merge_group("checks_requested"), group(MergeAction::ChecksRequested)),
        ("a group's end", "merge_group", merge_group("destroyed"), group(MergeAction::Destroyed)),
        (
            "a group's unknown",
            "merge_group",
            merge_group("admired"),
            Event::Ignored("an action of the merge queue that is not used"),
        ),
    ]
}

fn checks() -> Vec<Case> {
    let run = |action: CheckAction, external_id: Option<&str>| {
        Event::CheckRun(CheckRun {
            repository: seen(),
            action,
            app_id: APP,
            check_run: REPOSITORY + 2,
            name: "plimsoll/demo".to_owned(),
            external_id: external_id.map(|id| id.parse().unwrap()),
            head_sha: HEAD.parse().unwrap(),
            sender: Some(sender("mona")),
        })
    };
    let mut pressed = check_run("requested_action", json!(CHECK), json!([]));
    with(&mut pressed, json!({ "requested_action": { "identifier": "accept" } }));
    let mut gone = check_run("rerequested", json!(CHECK), json!([]));
    with(&mut gone, json!({ "sender": null }));
    let Event::CheckRun(by_nobody) = run(CheckAction::Rerequested, Some(CHECK)) else { unreachable!() };
    let mut no_app = check_run("rerequested", json!(CHECK), json!([]));
    no_app["check_run"]["app"] = Value::Null;
    let untouched = || Event::Ignored("a check run of which nobody asks anything");
    let suite =
        CheckSuite { repository: seen(), app_id: APP, head_sha: HEAD.parse().unwrap(), sender: Some(sender("mona")) };
    let app = json!({ "id": APP });
    vec![
        (
            "again",
            "check_run",
            check_run("rerequested", json!(CHECK), json!([])),
            run(CheckAction::Rerequested, Some(CHECK)),
        ),
        (
            "of no pull request",
            "check_run",
            check_run("rerequested", json!(""), Value::Null),
            run(CheckAction::Rerequested, None),
        ),
        (
            "another's id",
            "check_run",
            check_run("rerequested", json!("run-42"), json!([])),
            run(CheckAction::Rerequested, None),
        ),
        ("no id", "check_run", check_run("rerequested", Value::Null, json!([])), run(CheckAction::Rerequested, None)),
        ("a button", "check_run", pressed, run(CheckAction::RequestedAction("accept".to_owned()), Some(CHECK))),
        (
            "a button without a name",
            "check_run",
            check_run("requested_action", json!(CHECK), json!([])),
            Event::Ignored("a button without a name"),
        ),
        ("by a ghost", "check_run", gone, Event::CheckRun(CheckRun { sender: None, ..by_nobody })),
        ("of no App", "check_run", no_app, Event::Ignored("a check run of no App")),
        ("our echo", "check_run", check_run("created", json!(CHECK), json!([])), untouched()),
        ("our end", "check_run", check_run("completed", json!(CHECK), json!([])), untouched()),
        ("all again", "check_suite", check_suite("rerequested", app.clone()), Event::CheckSuite(suite)),
        (
            "all of no App",
            "check_suite",
            check_suite("rerequested", Value::Null),
            Event::Ignored("a check suite of no App"),
        ),
        (
            "a push's suite",
            "check_suite",
            check_suite("requested", app),
            Event::Ignored("a check suite of which nobody asks anything"),
        ),
    ]
}

fn comments() -> Vec<Case> {
    let said = |author: Option<Sender>, app_id: Option<i64>| {
        Event::Comment(Comment {
            repository: seen(),
            pull_request: 7,
            id: REPOSITORY + 4,
            author,
            app_id,
            body: "/plimsoll run".to_owned(),
            created_at: "2026-03-01T10:00:00Z".parse().unwrap(),
        })
    };
    let (eve, bot, ours) = (user("eve"), user("plimsoll[bot]"), json!({ "id": APP, "slug": "plimsoll" }));
    let old = || Event::Ignored("a comment that is not new");
    vec![
        (
            "a comment",
            "issue_comment",
            comment("created", eve.clone(), Value::Null, true),
            said(Some(sender("eve")), None),
        ),
        (
            "our own",
            "issue_comment",
            comment("created", bot, ours, true),
            said(Some(sender("plimsoll[bot]")), Some(APP)),
        ),
        ("of a ghost", "issue_comment", comment("created", Value::Null, Value::Null, true), said(None, None)),
        (
            "on an issue",
            "issue_comment",
            comment("created", eve.clone(), Value::Null, false),
            Event::Ignored("a comment on an issue that is no pull request"),
        ),
        ("edited", "issue_comment", comment("edited", eve.clone(), Value::Null, true), old()),
        ("deleted", "issue_comment", comment("deleted", eve, Value::Null, true), old()),
    ]
}

fn places() -> Vec<Case> {
    let installed = |action: InstallationAction, repositories: Vec<Repository>| {
        let (installation, account) = (INSTALLATION, "octo".to_owned());
        Event::Installation(Installation { installation, account, action, repositories })
    };
    let two = || json!([brief_repository(1, "octo/a"), brief_repository(2, "octo/b")]);
    let both = || vec![briefly(1, "octo/a"), briefly(2, "octo/b")];
    let reached = |added, removed| {
        Event::Repositories(Repositories { installation: INSTALLATION, account: "octo".to_owned(), added, removed })
    };
    let change = |change: Change| Event::Repository(RepositoryChange { repository: seen(), change });
    let changed = |action: &str| about(json!({ "action": action, "changes": { "repository": { "name": {} } } }));
    let mut enterprise = installation("created", two());
    enterprise["installation"]["account"] = json!({ "id": 1, "slug": "octo", "name": "Octo" });
    vec![
        ("installed", "installation", installation("created", two()), installed(InstallationAction::Created, both())),
        ("on an enterprise", "installation", enterprise, installed(InstallationAction::Created, both())),
        (
            "suspended",
            "installation",
            installation("suspend", Value::Null),
            installed(InstallationAction::Suspended, Vec::new()),
        ),
        (
            "unsuspended",
            "installation",
            installation("unsuspend", Value::Null),
            installed(InstallationAction::Unsuspended, Vec::new()),
        ),
        (
            "removed",
            "installation",
            installation("deleted", json!([])),
            installed(InstallationAction::Deleted, Vec::new()),
        ),
        (
            "permissions",
            "installation",
            installation("new_permissions_accepted", two()),
            installed(InstallationAction::PermissionsAccepted, both()),
        ),
        (
            "an installation's unknown",
            "installation",
            installation("polished", Value::Null),
            Event::Ignored("an action on an installation that is not used"),
        ),
        ("more", "installation_repositories", reach(two(), json!([])), reached(both(), Vec::new())),
        ("fewer", "installation_repositories", reach(Value::Null, two()), reached(Vec::new(), both())),
        ("renamed", "repository", changed("renamed"), change(Change::Renamed)),
        ("made", "repository", changed("created"), change(Change::Created)),
        ("edited", "repository", changed("edited"), change(Change::Edited)),
        ("transferred", "repository", changed("transferred"), change(Change::Transferred)),
        ("privatized", "repository", changed("privatized"), change(Change::Privatized)),
        ("publicized", "repository", changed("publicized"), change(Change::Publicized)),
        ("deleted", "repository", changed("deleted"), change(Change::Deleted)),
        ("archived", "repository", changed("archived"), Event::Ignored("an action on a repository that is not used")),
    ]
}

fn ignored() -> Vec<Case> {
    vec![
        ("ping of an App", "ping", ping(false), Event::Ignored("ping")),
        ("ping of a repository", "ping", ping(true), Event::Ignored("ping")),
        (
            "status",
            "status",
            about(json!({ "sha": HEAD, "state": "success" })),
            Event::Ignored("a commit status of others"),
        ),
        ("unknown", "time_machine", json!([1, null]), Event::Ignored("an event that is not used")),
    ]
}
