//! What a plan does not say is filled in; profiles and flags change it.

use plimsoll_domain::plan::Profile;

use super::*;

#[test]
fn the_least_plan_is_filled_in() {
    let loaded = good(SERVICE);
    let service = &loaded.plan.service;
    assert_eq!((service.method.as_str(), service.path.as_str(), service.origin.as_str()), ("GET", "/x", "http://h:1"));
    assert_eq!((service.connect_timeout_ms, service.response_timeout_ms, service.keep_alive), (3_000, 60_000, true));
    assert_eq!(loaded.plan.phases.staircase.workers, [5, 10, 20, 50, 100]);
    assert_eq!(loaded.plan.phases.stability.duration_ms, 600_000);
    assert_eq!((loaded.requests.bodies.len(), loaded.requests.bodies[0].len()), (1, 0));
    assert_eq!(loaded.policy, Policy::default());
}

#[test]
fn the_first_plan_that_init_writes_is_good_and_its_comments_hold_the_defaults() {
    let text = template::text("p", "http://h:1/x");
    let written = good(&text);
    // Every commented `key = value`, switched on, but for what cannot stand beside the rest.
    let alone = ["file =", "authorization =", "workers = 48", "\"/", "name =", "labels ="];
    let sections = ["[smoke]", "[warm_up]", "[staircase]", "[stability]"];
    let on = |line: &str| {
        let Some(rest) = line.strip_prefix("# ") else { return line.to_owned() };
        let key = rest.contains(" = ") && rest.starts_with(|c: char| c.is_ascii_lowercase());
        match (sections.contains(&rest) || key) && !alone.iter().any(|other| rest.starts_with(other)) {
            true => rest.to_owned(),
            false => line.to_owned(),
        }
    };
    let all: String = text.lines().skip(3).map(|line| on(line) + "\n").collect();
    assert!(all.contains("\nmethod = ") && all.contains("\nknee_fraction = "), "{all}");
    assert_eq!(good(&all).plan, written.plan);
    assert_eq!(good(&all).policy, Policy::default());
}

#[test]
fn a_plan_s_figures_go_before_the_profile_s_and_flags_before_both() {
    let text = format!("{SERVICE}[staircase]\nstep = \"20s\"\nworkers = [2, 4]\n[stability]\nduration = \"30s\"\n");
    let flags = Overrides {
        profile: Some(Profile::Quick),
        staircase: Some(vec![7]),
        stability_ms: Some(90_000),
        ..Overrides::default()
    };
    let phases = read_with(&text, &flags).unwrap().plan.phases;
    assert_eq!((phases.staircase.step_ms, phases.staircase.workers), (20_000, vec![7]));
    assert_eq!((phases.stability.duration_ms, phases.smoke.duration_ms), (90_000, 6_000));
}

#[test]
fn pr_has_the_digest_of_standard_and_takes_at_most_eight_minutes() {
    let with =
        |profile| read_with(SERVICE, &Overrides { profile: Some(profile), ..Overrides::default() }).unwrap().plan;
    let (standard, pr, quick) = (with(Profile::Standard), with(Profile::Pr), with(Profile::Quick));
    assert_eq!(standard.digest(), pr.digest());
    assert_ne!(standard.digest(), quick.digest());
    let phases = &pr.phases;
    let warm_up = phases.warm_up.max_duration_ms + phases.warm_up.top_ms;
    let total = phases.smoke.duration_ms + warm_up + pr.executed_step_ms() + pr.executed_stability_ms();
    assert!(total <= 8 * 60_000, "{total} ms");
    assert_eq!(standard.executed_stability_ms(), 600_000);
}

#[test]
fn shorter_steps_shorten_what_hangs_on_them() {
    let flags = Overrides { step_ms: Some(4_000), stability_ms: Some(8_000), ..Overrides::default() };
    let phases = read_with(SERVICE, &flags).unwrap().plan.phases;
    assert_eq!((phases.staircase.ramp_up_ms, phases.staircase.search_step_ms), (1_000, 4_000));
    assert_eq!(phases.stability.ramp_up_ms, 2_000);
}

#[test]
fn an_address_without_a_path_keeps_the_plan_s() {
    let url = |flag: &str| {
        let given = Overrides { url: Some(flag.to_owned()), ..Overrides::default() };
        read_with(SERVICE, &given).unwrap().requests.url.to_string()
    };
    assert_eq!(url("http://other:9"), "http://other:9/x");
    assert_eq!(url("http://other:9/"), "http://other:9/");
    assert_eq!(url("http://other:9/y?z=1"), "http://other:9/y?z=1");
}
