//! Rows in Postgres' binary COPY format.

use jiff::Timestamp;
use uuid::Uuid;

/// Rows of one table.
#[derive(Debug)]
pub(crate) struct Rows(Vec<u8>);

/// Microseconds from 1970 to Postgres' own epoch, 2000.
const EPOCH_US: i64 = 946_684_800_000_000;
const UUID_OID: i32 = 2950;

impl Rows {
    pub(crate) fn new() -> Self {
        let mut bytes = b"PGCOPY\n\xff\r\n\0".to_vec();
        bytes.extend([0; 8]);
        Self(bytes)
    }

    pub(crate) fn row(&mut self, columns: &[Field<'_>]) {
        self.0.extend((columns.len() as i16).to_be_bytes());
        columns.iter().for_each(|column| column.write(&mut self.0));
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.extend((-1i16).to_be_bytes());
        self.0
    }
}

#[derive(Debug)]
pub(crate) enum Field<'a> {
    Uuid(Uuid),
    Uuids(&'a [Uuid]),
    Text(Option<&'a str>),
    Json(&'a str),
    Bytes(&'a [u8]),
    Time(Option<Timestamp>),
    Bool(bool),
    Int(Option<u32>),
    Long(Option<i64>),
    Float(Option<f64>),
}

impl Field<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut put = |value: Option<&[u8]>| match value {
            None => out.extend((-1i32).to_be_bytes()),
            Some(bytes) => {
                out.extend((bytes.len() as i32).to_be_bytes());
                out.extend(bytes);
            }
        };
        match self {
            Self::Uuid(id) => put(Some(id.as_bytes())),
            Self::Uuids(ids) => {
                let mut array = Vec::new();
                let dimensions = i32::from(!ids.is_empty());
                [dimensions, 0, UUID_OID].iter().for_each(|word| array.extend(word.to_be_bytes()));
                if !ids.is_empty() {
                    [ids.len() as i32, 1].iter().for_each(|word| array.extend(word.to_be_bytes()));
                }
                for id in *ids {
                    array.extend(16i32.to_be_bytes());
                    array.extend(id.as_bytes());
                }
                put(Some(&array));
            }
            Self::Text(text) => put(text.map(str::as_bytes)),
            // Version 1, then the text.
            Self::Json(text) => put(Some(&[b"\x01", text.as_bytes()].concat())),
            Self::Bytes(bytes) => put(Some(bytes)),
            Self::Time(at) => put(at.map(|at| (at.as_microsecond() - EPOCH_US).to_be_bytes()).as_ref().map(|b| &b[..])),
            Self::Bool(is) => put(Some(&[u8::from(*is)])),
            Self::Int(number) => put(number.map(u32::to_be_bytes).as_ref().map(|b| &b[..])),
            Self::Long(number) => put(number.map(i64::to_be_bytes).as_ref().map(|b| &b[..])),
            Self::Float(number) => put(number.map(f64::to_be_bytes).as_ref().map(|b| &b[..])),
        }
    }
}
