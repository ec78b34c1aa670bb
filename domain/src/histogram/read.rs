//! Reading the V2 encoding straight into filled bins, without the table of all bins in between.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::Histogram as Table;
use hdrhistogram::serialization::Deserializer as HdrReader;

use super::{HIGHEST_US, Histogram, add, empty_table};

/// An encoded histogram larger than this is refused before it is decoded.
const MAX_ENCODED: usize = 1 << 20;
/// The highest value of the table that holds an hour: its last power of two.
const HIGHEST_TRACKED_US: u64 = (1 << 32) - 1;
/// A header, and nine bytes for each of the 23 × 1,024 bins of such a table.
const MAX_PLAIN: usize = 1 << 18;
/// The first four bytes of the deflated V2 encoding, and of the plain one.
const DEFLATED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
const HEADER: usize = 40;
/// Bins of the table that holds an hour.
pub(crate) const BINS: usize = 23 * HALF;
/// Bins of the first bucket, and of each further one.
const FIRST: usize = 2_048;
const HALF: usize = 1_024;

thread_local! {
    /// A report holds hundreds of histograms: the window and the buffer are used again.
    static SCRATCH: RefCell<(Decompress, Vec<u8>)> = RefCell::new((Decompress::new(true), vec![0; MAX_PLAIN + 1]));
    /// So are the bins, of which each histogram keeps a copy that fits.
    static BINS_READ: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn decode(bytes: &[u8]) -> Result<Histogram, String> {
    if bytes.len() > MAX_ENCODED {
        return Err(format!("an encoded histogram of {} bytes is larger than {MAX_ENCODED}", bytes.len()));
    }
    if word(bytes, 0)? != DEFLATED {
        return of_plain(bytes);
    }
    SCRATCH.with_borrow_mut(|(inflate, buffer)| {
        let packed = &bytes[bytes.len().min(8)..];
        let plain = unpack(inflate, buffer, packed)?;
        let whole = inflate.total_in() == packed.len() as u64;
        let mut histogram = of_plain(plain)?;
        // Only what has nothing after its end, and says so, is passed on as it came.
        let exact = whole && word(bytes, 4)? as usize == bytes.len() - 8;
        histogram.encoded = (exact && is_ours(plain)).then(|| bytes.into());
        Ok(histogram)
    })
}

/// Inflates into `buffer`, which holds one byte more than is allowed.
fn unpack<'b>(inflate: &mut Decompress, buffer: &'b mut [u8], packed: &[u8]) -> Result<&'b [u8], String> {
    inflate.reset(true);
    let ended = inflate.decompress(packed, buffer, FlushDecompress::Finish);
    let length = usize::try_from(inflate.total_out()).unwrap_or(usize::MAX).min(buffer.len());
    match ended {
        Ok(Status::StreamEnd) => Ok(&buffer[..length]),
        Ok(_) if length > MAX_PLAIN => Err("not an HdrHistogram of three digits: too long".to_owned()),
        Ok(_) => Err("not an HdrHistogram: cut short".to_owned()),
        Err(error) => Err(format!("not an HdrHistogram: {error}")),
    }
}

fn of_plain(plain: &[u8]) -> Result<Histogram, String> {
    // The library would reserve whatever memory the header asks for.
    let (payload, digits) = (word(plain, 4)?, word(plain, 12)?);
    if plain.len() > MAX_PLAIN || payload as usize > plain.len() || digits > 3 {
        return Err("not an HdrHistogram of three digits, or cut short".to_owned());
    }
    let high = double(plain, 24)?;
    if high > HIGHEST_TRACKED_US {
        return Err(format!("a histogram of values up to {high}: at most an hour in us is read"));
    }
    let read = if is_ours(plain) { bins(plain, high)? } else { None };
    match read {
        Some(bins) => Ok(Histogram { bins, ..Histogram::default() }),
        None => by_library(plain),
    }
}

/// Whole microseconds with three digits, in the plain form.
fn is_ours(plain: &[u8]) -> bool {
    let header = [(0, PLAIN), (8, 0), (12, 3)];
    header.iter().all(|(at, value)| word(plain, *at) == Ok(*value))
        && double(plain, 16) == Ok(1)
        && double(plain, 32) == Ok(1.0f64.to_bits())
        && double(plain, 24).is_ok_and(|high| high >= 2)
}

/// Upper end in µs and count, rising.
type Bins = Box<[(u64, u64)]>;

/// The filled bins; `None` when one lies past the hour, where values are clamped.
fn bins(plain: &[u8], high: u64) -> Result<Option<Bins>, String> {
    let cut = || "not an HdrHistogram: cut short".to_owned();
    let payload = word(plain, 4)? as usize;
    let mut payload = plain.get(HEADER..HEADER + payload).ok_or_else(cut)?;
    let mut buckets = 1;
    while (FIRST as u64) << (buckets - 1) <= high {
        buckets += 1;
    }
    let most = (buckets + 1) * HALF;
    let mut at = 0usize;
    BINS_READ.with_borrow_mut(|bins| {
        bins.clear();
        while let Some(first) = payload.first() {
            // Nearly all are a byte long.
            let (number, rest) = match first {
                0..0x80 => (zigzag(u64::from(*first)), &payload[1..]),
                _ => number(payload).ok_or_else(cut)?,
            };
            payload = rest;
            if number <= 0 {
                // So many empty bins; 0 is one.
                let empty = usize::try_from(number.unsigned_abs().max(1)).map_err(|_| cut())?;
                at = at.checked_add(empty).ok_or_else(cut)?;
                continue;
            }
            if at >= most {
                return Err("not an HdrHistogram: more bins than its range has".to_owned());
            }
            bins.push((upper_end(at), number.unsigned_abs()));
            at += 1;
        }
        let within = bins.last().is_none_or(|(us, _)| *us <= HIGHEST_US);
        Ok(within.then(|| bins.as_slice().into()))
    })
}

/// The bin of a latency.
pub(crate) fn bin(us: u64) -> usize {
    let bucket = (u64::BITS - us.leading_zeros()).saturating_sub(11) as usize;
    (bucket * HALF + (us >> bucket) as usize).min(BINS - 1)
}

/// The highest value of a bin.
pub(crate) fn upper_end(bin: usize) -> u64 {
    if bin < FIRST {
        return bin as u64;
    }
    let (bucket, within) = (bin / HALF - 1, bin % HALF + HALF);
    ((within as u64 + 1) << bucket) - 1
}

/// A zigzag-encoded number in at most nine bytes of seven bits, the ninth of eight.
fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0u64;
    for i in 0..9 {
        let byte = *bytes.get(i)?;
        let bits = if i < 8 { byte & 0x7f } else { byte };
        value |= u64::from(bits) << (7 * i);
        if byte & 0x80 == 0 || i == 8 {
            return Some((zigzag(value), &bytes[i + 1..]));
        }
    }
    None
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Other units, fewer digits, or values past the hour.
fn by_library(plain: &[u8]) -> Result<Histogram, String> {
    let read: Table<u64> =
        HdrReader::new().deserialize(&mut &plain[..]).map_err(|e| format!("not an HdrHistogram: {e:?}"))?;
    let bins = read.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value()));
    if read.low() == 1 && read.sigfig() == 3 && read.max() <= HIGHEST_US {
        return Ok(Histogram { bins: bins.collect(), ..Histogram::default() });
    }
    let mut table = empty_table();
    bins.for_each(|(us, count)| add(&mut table, us, count));
    let whole = Histogram { table: Some(Box::new(table)), ..Histogram::default() };
    Ok(Histogram { bins: whole.bins().collect(), ..Histogram::default() })
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(|| "not an HdrHistogram: cut short".to_owned())
}

fn double(bytes: &[u8], at: usize) -> Result<u64, String> {
    Ok(u64::from(word(bytes, at)?) << 32 | u64::from(word(bytes, at + 4)?))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer as _, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    fn plain(histogram: &mut Histogram) -> Vec<u8> {
        let mut plain = Vec::new();
        V2Serializer::new().serialize(histogram.table(), &mut plain).unwrap();
        plain
    }

    proptest! {
        #[test]
        fn bins_are_those_that_the_library_reads(
            values in prop::collection::vec((1u64..4_000_000_000, 1u64..1_000_000), 0..200)
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|(us, count)| histogram.record_n_us(*us, *count));
            let plain = plain(&mut histogram);
            prop_assert!(of_plain(&plain).unwrap() == by_library(&plain).unwrap());
        }

        #[test]
        fn what_the_library_refuses_is_refused(
            at in 0usize..120, byte in 0u8.., values in prop::collection::vec(1u64..10_000_000, 0..50)
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|us| histogram.record_us(*us));
            let mut plain = plain(&mut histogram);
            let at = at % plain.len();
            plain[at] = byte;
            if is_ours(&plain) && double(&plain, 24).unwrap() <= HIGHEST_TRACKED_US {
                match (bins(&plain, double(&plain, 24).unwrap()), by_library(&plain)) {
                    (Ok(Some(bins)), Ok(library)) => prop_assert!(bins.iter().copied().eq(library.bins())),
                    (Ok(None), Ok(_)) | (Err(_), Err(_)) => {}
                    (ours, library) => prop_assert!(false, "{ours:?} {library:?}"),
                }
            }
        }
    }

    #[test]
    fn each_bin_is_found_by_its_upper_end() {
        assert!((0..BINS).all(|i| bin(upper_end(i)) == i));
        assert_eq!(upper_end(BINS - 1), HIGHEST_TRACKED_US);
    }

    #[test]
    fn only_what_is_whole_and_ends_there_is_passed_on_as_it_came() {
        let mut histogram = Histogram::new();
        histogram.record_n_us(12_345, 678);
        let encoded = histogram.encode();
        let read = decode(&encoded).unwrap();
        assert_eq!(read.encoded.as_deref(), Some(&encoded[..]));
        let longer = [&encoded[..], b"more"].concat();
        let read = decode(&longer).unwrap();
        assert!(read.encoded.is_none() && read == histogram && read.encode() == encoded);
        let mut changed = decode(&encoded).unwrap();
        changed.record_us(5);
        assert!(changed.encoded.is_none() && changed.len() == 679);
        assert!(decode(&plain(&mut histogram)).unwrap().encoded.is_none());
    }
}
