//! Slips of the pen: the nearest right key is named, and no text is too strange to be answered.

use proptest::prelude::*;

use super::*;

#[test]
fn unknown_keys_name_the_nearest_right_one() {
    insta::assert_snapshot!(messages(&[
        "project = \"p\"\n[service]\nulr = \"http://h/\"\n",
        "project = \"p\"\n[servce]\nurl = \"http://h/\"\n",
        "projekt = \"p\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\n\n[staircase]\nsetp = \"30s\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nzzz = 1\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\n[gate]\np99 = { max_decrease = \"5%\" }\n",
    ]), @r#"
    error: plimsoll.toml:3:1: unknown key `ulr` in [service]
        |
      3 | ulr = "http://h/"
        | ^^^
      → did you mean `url`?

    error: plimsoll.toml:2:2: unknown section [servce]
        |
      2 | [servce]
        |  ^^^^^^
      → did you mean [service]?

    error: plimsoll.toml:1:1: unknown key `projekt`
        |
      1 | projekt = "p"
        | ^^^^^^^
      → did you mean `project`?

    error: plimsoll.toml:6:1: unknown key `setp` in [staircase]
        |
      6 | setp = "30s"
        | ^^^^
      → did you mean `step`?

    error: plimsoll.toml:4:1: unknown key `zzz` in [service]
        |
      4 | zzz = 1
        | ^^^
      → known here: url, method, headers, connect_timeout, response_timeout, keep_alive

    error: plimsoll.toml:5:9: unknown key `max_decrease` in [gate.p99]
        |
      5 | p99 = { max_decrease = "5%" }
        |         ^^^^^^^^^^^^
      → write p99 = { max_increase = "10%" }
    "#);
}

#[test]
fn of_a_long_line_the_part_around_the_mistake_is_shown() {
    let plan = format!("{SERVICE}[workload]\nbody = {{ a = \"{}\", b = nan, c = 1 }}\n", "é".repeat(500));
    let message = messages(&[plan.as_str()]);
    assert!(message.contains("holds nan, which JSON cannot say"), "{message}");
    assert!(message.lines().all(|line| line.chars().count() < 120), "{message}");
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_answered(at in 0usize..3_000, cut in 0usize..40, put in ".{0,6}|[\\[\\]{}=\"'\\n0-9]{0,6}") {
        let text = template::text("p", "http://h:1/x").replace("# ", "");
        let start = text.floor_char_boundary(at.min(text.len()));
        let end = text.floor_char_boundary((at + cut).min(text.len()));
        let spoiled = format!("{}{put}{}", &text[..start], &text[end..]);
        if let Err(error) = read_with(&spoiled, &Overrides::default()) {
            prop_assert!(!Failure::from(error).to_string().is_empty());
        }
    }
}
