//! What a report may take in memory, found out while it is read: a hundred bytes of JSON can hold a histogram that unpacks
//! to thousands of bins.

use serde::de::DeserializeOwned;

use crate::histogram;

/// Slices and summaries of all steps: five hours of slices of one second, or a day and more of slices of ten.
const MAX_HISTOGRAMS: u64 = 20_000;
/// Filled bins of all histograms, 16 bytes each.
const MAX_BINS: u64 = 8_000_000;

/// Reads a report or a part of one. Refuses histograms that are too many or too large, and any that are none.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    histogram::within(MAX_HISTOGRAMS, MAX_BINS, || serde_json::from_slice(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::synthetic::Synthetic;

    fn weigh(slices: usize, text: &str) -> Result<(), String> {
        let list = vec![format!("\"{text}\""); slices].join(",");
        read::<Vec<Histogram>>(format!("[{list}]").as_bytes()).map(drop).map_err(|error| error.to_string())
    }

    fn encoded(bins: u64) -> String {
        let mut histogram = Histogram::new();
        (0..bins).for_each(|i| histogram.record_us(1_024 << (i / 1_024) | (i % 1_024) << (i / 1_024)));
        assert_eq!(histogram.bins().count() as u64, bins);
        serde_json::to_value(&histogram).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        let (empty, full) = (encoded(0), encoded(20_000));
        assert!(full.len() < 1_000, "{} bytes", full.len());
        assert_eq!(weigh(MAX_HISTOGRAMS as usize, &empty), Ok(()));
        let many = weigh(MAX_HISTOGRAMS as usize + 1, &empty).unwrap_err();
        assert!(many.starts_with("more than 20000 histograms at line 1"), "{many}");
        assert_eq!(weigh(400, &full), Ok(()));
        let large = weigh(401, &full).unwrap_err();
        assert!(large.starts_with("histograms of more than 8000000 bins together"), "{large}");
    }

    #[test]
    fn a_real_report_is_far_from_it_and_each_has_all_of_it() {
        let long = Synthetic { step_s: 120, stability_s: 600, ..Synthetic::default() }.report().to_json();
        for _ in 0..3 {
            assert!(read::<crate::report::Report>(long.as_bytes()).is_ok());
        }
        assert!(read::<Vec<Histogram>>(b"[\"!!\"]").is_err());
    }
}
