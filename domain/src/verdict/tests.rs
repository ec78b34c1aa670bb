use super::*;
use crate::synthetic::Synthetic;

#[test]
fn timing() {
    let t = std::time::Instant::now();
    let a = Synthetic { tag: Some("v1.9.1".into()), ..Synthetic::default() }.report();
    let b = Synthetic { tag: Some("v1.9.2".into()), seed: 2, run_factor: 1.3, ..Synthetic::default() }.report();
    println!("made in {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let c = judge(
        Some(&Baseline { runs: vec![&a], chosen_because: None }),
        &b,
        &Policy::default(),
        &Noise::default(),
    );
    println!("judged in {:?}", t.elapsed());
    println!("{}", c.sentence);
    for m in &c.metrics {
        println!("{m:?}");
    }
    println!("{}", sentence::summary(&crate::figures::Figures::of(&b)));
}
