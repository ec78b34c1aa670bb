//! What a `runner.toml` means, and what is refused in it.

use super::*;

const LEAST: &str = "server = \"https://plimsoll.example\"\n[project.sentiment]\n\
                     repository = \"https://git.example/sentiment.git\"\nstart = \"exec ./serve\"\n\
                     origins = [\"http://127.0.0.1:8000\"]\n";

fn read_text(text: &str) -> Result<Config, Failure> {
    let environment = |name: &str| (name == "HOME").then(|| "/home/runner".to_owned());
    let source = plan::Source { path: "runner.toml".into(), text: text.to_owned() };
    read(&source, &environment).map_err(Failure::from)
}

#[test]
fn the_least_file_is_filled_in() {
    let config = read_text(LEAST).unwrap();
    assert_eq!((config.drain_timeout, config.grace), (Duration::from_secs(1_800), Duration::from_secs(10)));
    assert_eq!(config.limits, Limits::default());
    assert!(config.state.ends_with("plimsoll-runner"));
    let recipe = &config.projects[0];
    assert_eq!((recipe.project.as_str(), recipe.plan.as_str()), ("sentiment", plan::FILE));
    assert_eq!((recipe.ports.as_slice(), &recipe.ready.test), (&[8000][..], &Test::Ports));
    assert_eq!(recipe.listed.origins, ["http://127.0.0.1:8000"]);
}

#[test]
fn the_documented_file_is_good() {
    let page = include_str!("../../../../docs/runner.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let config = read_text(rest.split_once("```").unwrap().0).unwrap();
    let names: Vec<&str> = config.projects.iter().map(|recipe| recipe.project.as_str()).collect();
    assert_eq!(names, ["sentiment", "embedding"]);
    assert_eq!(config.projects[1].image.as_ref().unwrap().name, "registry.example/embedding");
    let stop = config.projects[0].stop.as_ref().unwrap();
    assert_eq!(stop.timeout, Duration::from_secs(30));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let after = |addition: &str| format!("{LEAST}{addition}\n");
    for (text, said) in [
        ("server = \"plimsoll.example\"\n".to_owned(), "runner.toml:1:10: `server` is no http or https address"),
        ("server = \"https://h\"\n".to_owned(), "there is no [project.NAME]"),
        (after("stert = \"x\""), "unknown key `stert` in [project.sentiment]"),
        (after("directory = \"/srv\""), "`project.sentiment.repository` stands beside `directory`"),
        (after("working_directory = \"../x\""), "no plain path below the checkout"),
        (after("inherit = [\"PLIMSOLL_TOKEN\"]"), "PLIMSOLL_TOKEN belongs to the agent"),
        (after("plan_environment = [\"A B\"]"), "no name of an environment variable"),
        (after("image = \"registry.example/a:latest\""), "no name of an image without its tag"),
        (after("pull = true"), "says nothing without `image`"),
        (after("ready = { url = \"ftp://h/\" }"), "no http or https address"),
        (after("ports = [0]"), "must be from 1 to 65535"),
        (after("stop = \" \""), "is no command"),
        (LEAST.replace("https://git.example/sentiment.git", "--upload-pack=x"), "is no address of a repository"),
        (LEAST.replace("https://git.example/sentiment.git", "ext::sh -c x"), "is no address of a repository"),
        (LEAST.replace("https://git.example", "https://u:p@git.example"), "repository` holds a user name"),
        (LEAST.replace("https://git.example", "https://t0ken@git.example"), "repository` holds a user name"),
        (LEAST.replace("https://git.example", "ssh://git:p@git.example"), "repository` holds a user name"),
        (LEAST.replace("https://plimsoll.example", "https://t0ken@plimsoll.example"), "`server` holds a user name"),
        (LEAST.replace("http://127.0.0.1:8000", "http://u@127.0.0.1:8000"), "holds a user name"),
        (after("ready = { url = \"http://u:p@127.0.0.1/\" }"), "url` holds a user name"),
        (LEAST.replace("http://127.0.0.1:8000", "http://127.0.0.1:8000/x"), "holds a path"),
        (LEAST.replace("[project.sentiment]", "[project.api]"), "no project's name"),
        (format!("state = \"here\"\n{LEAST}"), "must be a whole path"),
    ] {
        let failure = read_text(&text).unwrap_err().to_string();
        assert!(failure.contains(said), "{said} in {failure}");
    }
}

#[test]
fn over_ssh_the_user_s_name_is_an_account() {
    for address in ["ssh://git@git.example/sentiment.git", "git@git.example:sentiment.git", "/srv/sentiment.git"] {
        let config = read_text(&LEAST.replace("https://git.example/sentiment.git", address)).unwrap();
        assert_eq!(config.projects[0].place, Place::Repository(address.to_owned()));
    }
}

#[test]
fn values_do_not_show_when_a_configuration_is_printed() {
    let config = read_text(&format!("{LEAST}environment = {{ PASSWORD = \"s3cret\" }}\n")).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
}
