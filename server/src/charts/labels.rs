//! Labels at the ends of lines, moved apart where they would overlap.

/// Moves the positions apart so that neighbours are at least `gap` from each other, as little as possible from where
/// they were, and within `low..=high` where that has room. The order of equal positions is kept.
pub(super) fn spread(at: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..at.len()).collect();
    order.sort_by(|a, b| at[*a].total_cmp(&at[*b]));
    let mut placed: Vec<f64> = order.iter().map(|i| at[*i].clamp(low, high.max(low))).collect();
    for i in 1..placed.len() {
        placed[i] = placed[i].max(placed[i - 1] + gap);
    }
    // What was pushed past the end is pulled back, and takes its neighbours along.
    let mut limit = high;
    for y in placed.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - gap;
    }
    let mut out = vec![0.0; at.len()];
    for (y, i) in placed.into_iter().zip(order) {
        out[i] = y;
    }
    out
}

/// The room that labels have taken, each of one line's height.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<(f64, f64, f64)>);

impl Taken {
    /// Takes the room from `x0` to `x1` around `y`; false, and nothing taken, where it would cover another's.
    pub(super) fn takes(&mut self, x0: f64, x1: f64, y: f64) -> bool {
        const HEIGHT: f64 = 15.0;
        let free = self.0.iter().all(|(a, b, other)| x1 < *a || x0 > *b || (y - other).abs() >= HEIGHT);
        if free {
            self.0.push((x0, x1, y));
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_keep_their_distance() {
        assert_eq!(spread(&[10.0, 50.0], 14.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[50.0, 48.0], 14.0, 0.0, 100.0), [62.0, 48.0]);
        assert_eq!(spread(&[98.0, 99.0, 97.0], 10.0, 0.0, 100.0), [90.0, 100.0, 80.0]);
        assert_eq!(spread(&[], 10.0, 0.0, 1.0), Vec::<f64>::new());
    }

    #[test]
    fn a_label_takes_its_room_once() {
        let mut taken = Taken::default();
        assert!(taken.takes(0.0, 50.0, 100.0));
        assert!(!taken.takes(40.0, 60.0, 108.0));
        assert!(taken.takes(40.0, 60.0, 120.0) && taken.takes(51.0, 60.0, 100.0));
    }
}
