//! What a report takes in memory, found out before it is read: a hundred bytes of JSON can hold a histogram that unpacks
//! to thousands of bins. Histograms are unpacked one by one and let go, up to what all of them together may hold.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::histogram::Histogram;

/// Slices and summaries of all steps: five hours of slices of one second, or a day and more of slices of ten.
const MAX_HISTOGRAMS: u64 = 20_000;
/// Filled bins of all histograms, 16 bytes each.
const MAX_BINS: u64 = 8_000_000;
/// Where histograms lie, and what leads there.
const LISTS: [&str; 3] = ["phases", "steps", "slices"];
const HISTOGRAMS: [&str; 3] = ["latency", "latency_censored", "first_byte"];

/// Refuses a report whose histograms are too many or too large, and any that are none.
pub(super) fn check(json: &[u8]) -> Result<(), serde_json::Error> {
    let held = Held::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    de::DeserializeSeed::deserialize(Walk(&held), &mut reader)
}

/// So far.
#[derive(Debug, Default)]
struct Held {
    histograms: Cell<u64>,
    bins: Cell<u64>,
}

impl Held {
    fn add<E: de::Error>(&self, histogram: &Histogram) -> Result<(), E> {
        self.histograms.set(self.histograms.get() + 1);
        self.bins.set(self.bins.get() + histogram.bins().count() as u64);
        if self.histograms.get() > MAX_HISTOGRAMS {
            return Err(E::custom(format_args!("more than {MAX_HISTOGRAMS} histograms")));
        }
        if self.bins.get() > MAX_BINS {
            return Err(E::custom(format_args!("histograms of more than {MAX_BINS} bins together")));
        }
        Ok(())
    }
}

/// Goes down to the histograms; anything else is left to whoever reads the report.
#[derive(Clone, Copy)]
struct Walk<'h>(&'h Held);

impl<'de> de::DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if LISTS.contains(&&*key) || HISTOGRAMS.contains(&&*key) {
                map.next_value_seed(self)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let histogram = Histogram::deserialize(de::value::StrDeserializer::<E>::new(text))?;
        self.0.add(&histogram)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    fn weigh(slices: usize, text: &str) -> Result<(), String> {
        let list = vec![format!("\"{text}\""); slices].join(",");
        let json = format!("{{\"phases\":[{{\"steps\":[{{\"slices\":[{list}]}}]}}]}}");
        check(json.as_bytes()).map_err(|error| error.to_string())
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
    fn a_real_report_is_far_from_it() {
        let long = Synthetic { step_s: 120, stability_s: 600, ..Synthetic::default() }.report().to_json();
        assert!(check(long.as_bytes()).is_ok());
        assert!(check(b"{\"phases\":[{\"steps\":[{\"latency\":\"!!\"}]}]}").is_err());
    }
}
