//! What holds for every chart, whatever it is given.

use std::time::{Duration, Instant};

use plimsoll_domain::figures::Figures;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;

use super::*;

const HOSTILE: &str = "<script>alert(1)</script>\"&' 版本";

fn report(pool: u32) -> Report {
    Synthetic { pool, stability_s: 40, step_s: 8, staircase: vec![5, 20, 60], ..Synthetic::default() }.report()
}

/// No colour, no figure that is none, no text that became markup; every class is one of the sheet's.
fn sound(markup: &str) {
    let sheet = include_str!("../../assets/style.css");
    for wrong in ["NaN", "inf", "<script", "style=", "font-family", "rgb("] {
        assert!(!markup.contains(wrong), "{wrong} in {markup}");
    }
    for (at, _) in markup.match_indices('#') {
        let hex = markup[at + 1..].bytes().take_while(u8::is_ascii_hexdigit).count();
        assert!(hex < 3 || markup[..at].ends_with('&'), "a colour at {at}: {}", &markup[at..at + 8]);
    }
    for (at, _) in markup.match_indices("class=\"") {
        let classes = markup[at + 7..].split('"').next().unwrap_or_default();
        for class in classes.split(' ').filter(|class| !class.starts_with("of-")) {
            assert!(sheet.contains(&format!(".{class}")), "no rule for {class}");
        }
    }
    let count = |text: &str| markup.matches(text).count();
    assert_eq!(count("<svg"), count("</svg>"));
    assert_eq!(count("<text"), count("</text>"));
    assert_eq!(count("role=\"img\""), count("<svg"));
}

fn release(label: &str, i: usize) -> Release {
    let p99 = 200.0 + (i * 37 % 50) as f64;
    Release {
        label: label.to_owned(),
        detail: "3f2c91a, 25 Nov 2025".to_owned(),
        href: format!("/sentiment/snapshots/{i}?a=1&b=\"2\""),
        p99_ms: Some(p99),
        p99_interval_ms: Some([p99 - 4.0, p99 + 4.0]),
        capacity_tps: Some(280.0 + (i % 7) as f64),
        allowed_p99_ms: Some(260.0),
        allowed_capacity_tps: Some(250.0),
        standing: Standing::Plain,
        worse: Worse::default(),
        segment: i / 40,
    }
}

#[test]
fn staircases_of_one_run_and_of_two() {
    let (old, new) = (Figures::of(&report(16)), Figures::of(&report(8)));
    let base = Stairs { label: HOSTILE, figures: &old, tone: Tone::Baseline };
    let alone = snapshot_stairs(Stairs { label: HOSTILE, figures: &new, tone: Tone::Plain }, Some(base)).unwrap();
    let both = compared_stairs(base, Stairs { label: "v2", figures: &new, tone: Tone::Worse }).unwrap();
    for chart in [&alone, &both] {
        sound(&chart.markup());
        assert!(chart.markup().contains("&lt;script&gt;"));
        assert_eq!(chart.table.rows.len(), old.steps.len() + new.steps.len());
    }
    let capacity = new.capacity.unwrap();
    assert!(alone.markup().contains(&format!("knee {}<", capacity.workers)), "{}", alone.markup());
    assert!(alone.markup().contains("capacity<") && alone.markup().contains("pinned load 24<"));
}

#[test]
fn an_image_brings_its_colours_and_its_size() {
    let (old, new) = (Figures::of(&report(16)), Figures::of(&report(8)));
    let base = Stairs { label: HOSTILE, figures: &old, tone: Tone::Baseline };
    let alone = snapshot_stairs(Stairs { label: HOSTILE, figures: &new, tone: Tone::Plain }, Some(base)).unwrap();
    let both = compared_stairs(base, Stairs { label: "v2", figures: &new, tone: Tone::Worse }).unwrap();
    for (chart, (width, height)) in [(&alone, ALONE), (&both, PAIR)] {
        for theme in Theme::ALL {
            let image = chart.image(theme);
            let (head, body) = image.split_once("<style>").unwrap();
            let (sheet, body) = body.split_once("</style>").unwrap();
            assert!(head.starts_with(&format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawn\" width=\"{width}\" height=\"{height}\""
            )));
            assert!(head.contains("&lt;script&gt;") && !image.contains("<script"), "{head}");
            for (at, _) in body.match_indices("class=\"") {
                for class in body[at + 7..].split('"').next().unwrap_or_default().split(' ') {
                    assert!(sheet.contains(&format!(".{class}")), "no rule for {class} in {sheet}");
                }
            }
            assert_eq!(image.matches("<svg").count(), 1);
            assert_eq!(body.matches("currentColor").count(), body.matches("class=\"i-").count());
        }
    }
}

#[test]
fn a_staircase_of_one_step_or_none() {
    let mut figures = Figures::of(&report(8));
    figures.steps.truncate(1);
    figures.capacity = None;
    fn run(figures: &Figures) -> Option<Chart> {
        snapshot_stairs(Stairs { label: "v1", figures, tone: Tone::Plain }, None)
    }
    sound(&run(&figures).unwrap().markup());
    figures.steps[0].tps = None;
    assert!(run(&figures).is_none());
    figures.steps.clear();
    assert!(run(&figures).is_none());
}

#[test]
fn a_soak_has_at_most_sixty_points_and_breaks_at_a_gap() {
    let report = Synthetic { stability_s: 600, ..Synthetic::default() }.report();
    let figures = Figures::of(&report);
    let soaked = &figures.stability.as_ref().unwrap().step;
    let mut step = report.stability().unwrap().clone();
    let all = slices(&step);
    assert!((4..=60).contains(&all.len()), "{}", all.len());
    assert_eq!(all.iter().map(|slice| slice.requests).sum::<u64>(), step.latency.len());
    assert!(all.iter().all(|slice| slice.p99_ms.is_some()), "{all:?}");
    sound(&soak(&step, soaked, HOSTILE).unwrap().markup());

    step.slices[9] = Histogram::new();
    let broken = soak(&step, soaked, "v1").unwrap();
    sound(&broken.markup());
    step.slices = vec![Histogram::new(); 3];
    assert!(soak(&step, soaked, "v1").is_none());
}

#[test]
fn slices_too_thin_for_a_p99_keep_their_p50() {
    let report = Synthetic { pool: 1, stability_workers: 1, service_ms: 100.0, ..Synthetic::default() }.report();
    let all = slices(report.stability().unwrap());
    assert!(all.len() > 20 && all.iter().all(|slice| slice.p50_ms.is_some() && slice.p99_ms.is_none()), "{all:?}");
}

#[test]
fn a_distribution_ends_where_its_requests_do() {
    let one = report(8).stability().unwrap().latency.clone();
    let curve = |histogram, tone| Curve { label: HOSTILE, tone, histogram };
    let pair = [curve(&one, Tone::Baseline), curve(&one, Tone::Worse)];
    sound(&distribution(&pair).unwrap().markup());
    let chart = distribution(&[curve(&one, Tone::Plain)]).unwrap();
    sound(&chart.markup());
    assert_eq!(chart.table.rows[0][1], Datum::Is(plimsoll_domain::format::number(one.quantile_ms(0.5).unwrap())));
    let mut few = Histogram::new();
    (0..100).for_each(|i| few.record_us(1_000 + i));
    let names = |chart: &Chart| chart.table.rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let chart = distribution(&[curve(&few, Tone::Plain)]).unwrap();
    assert!(!names(&chart).contains(&Datum::Is("P99".to_owned())), "{:?}", names(&chart));
    assert!(distribution(&[curve(&Histogram::new(), Tone::Plain)]).is_none());
}

#[test]
fn histories_of_one_three_and_three_hundred_releases() {
    for count in [1, 3, 300] {
        let mut releases: Vec<Release> = (0..count).map(|i| release(&format!("v1.{i}.0"), i)).collect();
        releases[count / 2].standing = Standing::Invalid;
        releases[0].label = HOSTILE.to_owned();
        if count > 2 {
            releases[1].p99_ms = None;
            releases[2].standing = Standing::Regressed;
        }
        let chart = history(&History { releases, workers: Some(48) }).unwrap();
        let markup = chart.markup();
        sound(&markup);
        assert_eq!(markup.matches("<svg").count(), 3);
        assert!(markup.contains("href=\"/sentiment/snapshots/0?a=1&amp;b=&quot;2&quot;\""), "{markup}");
        assert!(markup.contains("not judged"));
        assert_eq!(chart.table.rows.len(), count);
        assert!(markup.len() < 30_000 + 3_000 * count, "{} bytes for {count}", markup.len());
    }
    assert!(history(&History { releases: Vec::new(), workers: None }).is_none());
}

#[test]
fn a_measure_that_no_release_has_gets_no_panel() {
    let drawn = |p99: bool, capacity: bool| {
        let releases = (0..3).map(|i| {
            let all = release(&format!("v1.{i}.0"), i);
            Release { p99_ms: all.p99_ms.filter(|_| p99), capacity_tps: all.capacity_tps.filter(|_| capacity), ..all }
        });
        history(&History { releases: releases.collect(), workers: Some(1) }).map(|chart| chart.markup())
    };
    let only = drawn(false, true).unwrap();
    sound(&only);
    assert!(only.contains("Capacity for each release") && only.contains("capacity, TPS"), "{only}");
    assert!(!only.contains(">P99"), "{only}");
    let only = drawn(true, false).unwrap();
    sound(&only);
    assert!(only.contains("P99 at 1 worker for each release") && !only.contains("capacity, TPS"), "{only}");
    assert!(drawn(true, true).unwrap().contains("capacity, TPS"));
    assert!(drawn(false, false).is_none());
}

#[test]
fn five_thousand_releases_stay_small_and_quick() {
    let releases = (0..5_000).map(|i| release(&format!("v{i}"), i)).collect();
    let history_of = History { releases, workers: None };
    let start = Instant::now();
    let markup = history(&history_of).unwrap().markup();
    let took = start.elapsed();
    sound(&markup);
    assert!(markup.len() < 1_500_000, "{} bytes", markup.len());
    // Tens of milliseconds when optimised; the bound is for an unoptimised build on a busy machine.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn sparks_take_gaps_and_single_values() {
    for values in [&[Some(1.0)][..], &[Some(3.0), None, Some(2.0)], &[Some(0.0), Some(0.0)]] {
        sound(&spark(values, Tone::Worse, HOSTILE));
    }
    assert_eq!(spark(&[None], Tone::Plain, ""), "");
}
