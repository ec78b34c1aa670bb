//! Latency histograms: HDR, whole microseconds, three significant digits.
//!
//! They are merged, never averaged, and travel in HdrHistogram's V2 compressed encoding (base64 in JSON), so that any
//! percentile can be asked for later and other tools can read them.

mod allowance;
mod read;

use std::fmt;

use hdrhistogram::Histogram as Table;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(crate) use allowance::within;
pub(crate) use read::{BINS, bin, upper_end};

/// The longest latency kept apart, one hour in microseconds; longer ones count as this.
pub const HIGHEST_US: u64 = 3_600_000_000;
/// Empty and decoded ones hold their filled bins only; the table of all bins, 90 KB and more, comes with the first
/// latency that is added.
#[derive(Clone, Default)]
pub struct Histogram {
    /// Upper end in µs and count, rising. Empty once there is a table.
    bins: Box<[(u64, u64)]>,
    table: Option<Box<Table<u64>>>,
    /// The encoding it was read from, as long as nothing is added: a report is passed on as it came.
    encoded: Option<Box<[u8]>>,
}

/// By what they hold: how far the table behind a histogram has grown says nothing.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.bins().eq(other.bins())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram(n = {}, max = {:?} us)", self.len(), self.max_us())
    }
}

impl Histogram {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one latency. Below 1 µs counts as 1 µs, above an hour as an hour.
    pub fn record_us(&mut self, us: u64) {
        self.record_n_us(us, 1);
    }

    pub fn record_n_us(&mut self, us: u64, count: u64) {
        add(self.table(), us, count);
    }

    pub fn merge(&mut self, other: &Self) {
        if let Some(table) = &other.table {
            self.table().add(&**table).expect("the histogram grows to its bound");
        }
        if !other.bins.is_empty() {
            let table = self.table();
            other.bins.iter().for_each(|(us, count)| add(table, *us, *count));
        }
    }

    /// All of `parts` in one.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut whole = Self::new();
        for part in parts {
            whole.merge(part);
        }
        whole
    }

    pub fn len(&self) -> u64 {
        match &self.table {
            Some(table) => table.len(),
            None => self.bins.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The latency in ms below or at which the fraction `q` (0 to 1) of the requests lie; `None` when empty.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let rank = ((q.clamp(0.0, 1.0) * self.len() as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let mut reaches = |count: u64| {
            seen = seen.saturating_add(count);
            seen >= rank
        };
        let reached = match &self.table {
            // A plain list of bins is gone through several times faster than the table's iterator.
            None => self.bins.iter().copied().find(|(_, count)| reaches(*count)),
            Some(_) => self.bins().find(|(_, count)| reaches(*count)),
        };
        let us = reached.map(|(us, _)| us).or_else(|| self.max_us())?;
        Some(us as f64 / 1_000.0)
    }

    pub fn max_us(&self) -> Option<u64> {
        match &self.table {
            Some(table) => (!table.is_empty()).then(|| table.max()),
            None => self.bins.last().map(|(us, _)| *us),
        }
    }

    pub fn max_ms(&self) -> Option<f64> {
        self.max_us().map(|us| us as f64 / 1_000.0)
    }

    /// The mean in ms. Never a headline: it hides the tail.
    pub fn mean_ms(&self) -> Option<f64> {
        let n = self.len() as f64;
        let sum: f64 = self.bins().map(|(us, count)| middle(us) * (count as f64 / n)).sum();
        (!self.is_empty()).then_some(sum / 1_000.0)
    }

    /// The filled bins in rising order: the bin's representative latency in µs (its upper end, what a percentile
    /// reports) and its count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let table = self.table.iter().flat_map(|table| table.iter_recorded());
        let of_table = table.map(|bin| (bin.value_iterated_to(), bin.count_since_last_iteration()));
        self.bins.iter().copied().chain(of_table)
    }

    /// How many bins are filled.
    fn filled(&self) -> usize {
        match &self.table {
            Some(_) => self.bins().count(),
            None => self.bins.len(),
        }
    }

    /// HdrHistogram's V2 encoding, deflated: the one it was read from, else one that is the same for equal histograms. The
    /// encoding tells how far the table has grown, which depends on how a histogram came about, so it is written from a
    /// fresh one.
    pub fn encode(&self) -> Vec<u8> {
        if let Some(encoded) = &self.encoded {
            return encoded.to_vec();
        }
        let mut fresh = empty_table();
        self.bins().for_each(|(us, count)| add(&mut fresh, us, count));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&fresh, &mut bytes).expect("writing to memory does not fail");
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, or any V2 encoding in microseconds with at most three digits.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        read::decode(bytes)
    }

    fn table(&mut self) -> &mut Table<u64> {
        let bins = std::mem::take(&mut self.bins);
        self.encoded = None;
        self.table.get_or_insert_with(|| {
            let mut table = empty_table();
            bins.iter().for_each(|(us, count)| add(&mut table, *us, *count));
            Box::new(table)
        })
    }
}

fn empty_table() -> Table<u64> {
    let mut table = Table::new_with_bounds(1, 1_000_000, 3).expect("constant bounds are valid");
    table.auto(true);
    table
}

fn add(table: &mut Table<u64>, us: u64, count: u64) {
    table.record_n(us.clamp(1, HIGHEST_US), count).expect("the histogram grows to its bound");
}

/// The middle of the bin whose upper end is `us`: bins hold 2,048 steps to each power of two.
fn middle(us: u64) -> f64 {
    let width = 1u64 << (u64::BITS - us.leading_zeros()).saturating_sub(11);
    (us + 1 - width + width / 2) as f64
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Histogram {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte)))
            .description(Some("HdrHistogram's V2 compressed encoding in base64; values are µs"))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Histogram {}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::STANDARD;
        match &self.encoded {
            Some(encoded) => serializer.serialize_str(&base64.encode(encoded)),
            None => serializer.serialize_str(&base64.encode(self.encode())),
        }
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Base64)
    }
}

/// The text is not copied before it is decoded.
struct Base64;

impl de::Visitor<'_> for Base64 {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Histogram, E> {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(E::custom)?;
        let histogram = Histogram::decode(&bytes).map_err(E::custom)?;
        allowance::take(&histogram).map_err(E::custom)?;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tail_that_a_mean_hides() {
        let mut histogram = Histogram::new();
        histogram.record_n_us(200_000, 990);
        histogram.record_n_us(5_000_000, 10);
        let near = |a: Option<f64>, b: f64| (a.unwrap() / b - 1.0).abs() < 1e-3;
        assert!(near(histogram.quantile_ms(0.5), 200.0));
        assert!(near(histogram.quantile_ms(0.99), 200.0));
        assert!(near(histogram.quantile_ms(0.991), 5_000.0));
        assert!(near(histogram.mean_ms(), 248.0));
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::new();
        assert_eq!((empty.quantile_ms(0.99), empty.max_ms(), empty.mean_ms()), (None, None, None));
        let back: Histogram = serde_json::from_str(&serde_json::to_string(&empty).unwrap()).unwrap();
        assert!(back.is_empty());
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        for text in ["\"\"", "\"!!\"", "\"AAAA\"", "\"HISTFA==\"", "17", "null"] {
            assert!(serde_json::from_str::<Histogram>(text).is_err(), "{text}");
        }
        // A header that asks for memory: five digits, or a payload of 4 GB.
        let mut good = Vec::new();
        hdrhistogram::serialization::V2Serializer::new().serialize(&empty_table(), &mut good).unwrap();
        assert!(Histogram::decode(&good).is_ok());
        let with = |at: usize, four: u32| {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&four.to_be_bytes());
            Histogram::decode(&bad)
        };
        assert!(with(12, 5).is_err() && with(4, u32::MAX).is_err());
        // More than an hour: the table of any 64-bit value.
        assert!(with(24, 1).is_err() && with(24, u32::MAX >> 1).is_err());
    }

    #[test]
    fn what_was_read_holds_its_filled_bins_only_and_says_the_same() {
        let mut histogram = Histogram::new();
        for us in [0, 1, 900, 2_047, 2_048, 150_000, 150_010, 999_936, 61_000_000, HIGHEST_US, u64::MAX] {
            histogram.record_n_us(us, 1 + us % 7);
        }
        let mut back = Histogram::decode(&histogram.encode()).unwrap();
        assert!(back.table.is_none() && back.bins.len() == histogram.bins().count());
        assert_eq!(
            (back.len(), back.max_us(), back.mean_ms()),
            (histogram.len(), histogram.max_us(), histogram.mean_ms())
        );
        for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            assert_eq!(back.quantile_ms(q), histogram.quantile_ms(q), "{q}");
        }
        let table = histogram.table().clone();
        assert!((histogram.mean_ms().unwrap() * 1_000.0 / table.mean() - 1.0).abs() < 1e-9);
        assert_eq!(histogram.quantile_ms(0.5), Some(table.value_at_quantile(0.5) as f64 / 1_000.0));
        assert!(Histogram::merged([&back, &histogram]).len() == 2 * back.len());
        back.record_us(5);
        assert_eq!(back.len(), histogram.len() + 1);
        assert!(Histogram::decode(&Histogram::new().encode()).unwrap().bins.is_empty());
    }

    proptest! {
        #[test]
        fn spoiled_bytes_never_panic(at in 0usize..200, byte in 0u8.., values in prop::collection::vec(1u64..10_000_000, 0..50)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|us| histogram.record_us(*us));
            let mut plain = Vec::new();
            hdrhistogram::serialization::V2Serializer::new().serialize(histogram.table(), &mut plain).unwrap();
            for mut bytes in [plain, histogram.encode()] {
                let at = at % bytes.len();
                bytes[at] = byte;
                let _ = Histogram::decode(&bytes);
                let _ = Histogram::decode(&bytes[..at]);
            }
        }

        #[test]
        fn encoding_loses_nothing(values in prop::collection::vec((1u64..10_000_000_000, 1u64..1_000), 0..200)) {
            let mut histogram = Histogram::new();
            for (us, count) in values {
                histogram.record_n_us(us, count);
            }
            let json = serde_json::to_string(&histogram).unwrap();
            let back: Histogram = serde_json::from_str(&json).unwrap();
            prop_assert!(histogram == back);
            prop_assert_eq!(histogram.encode(), back.encode());
        }

        #[test]
        fn merging_is_the_same_as_recording_together(a in prop::collection::vec(1u64..10_000_000, 0..100), b in prop::collection::vec(1u64..10_000_000, 0..100)) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|us| histogram.record_us(*us));
                histogram
            };
            let together = of(&[a.clone(), b.clone()].concat());
            prop_assert!(Histogram::merged([&of(&a), &of(&b)]).bins().eq(together.bins()));
        }
    }
}
