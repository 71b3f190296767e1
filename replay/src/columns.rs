//! Where the parts of an uplink are in a table, by the names of its columns.

mod encoding;

use std::str;

use csv::ByteRecord;
use serde_json::value::RawValue;
use types::Timestamp;

pub use self::encoding::Encoding;
use crate::{
    Error, Stored,
    stored::{Found, Name},
};

/// A part of an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The payload.
    Payload,
    /// The LoRaWAN port.
    Port,
    /// When it was received.
    Time,
    /// The object that was stored.
    Object,
    /// The device.
    Device,
    /// The application.
    Application,
    /// What the source calls it.
    Id,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Payload, Self::Port, Self::Time, Self::Object, Self::Device, Self::Application, Self::Id];

    /// How options spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Port => "port",
            Self::Time => "time",
            Self::Object => "object",
            Self::Device => "device",
            Self::Application => "application",
            Self::Id => "id",
        }
    }

    /// The columns that have it in what networks and we export, without underscores, the best first.
    fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Payload => &["payload", "data", "frmpayload", "payloadraw", "payloadhex", "datahex", "hex"],
            Self::Port => &["port", "fport"],
            Self::Time => &["received", "time", "receivedat", "timestamp"],
            Self::Object => &["result", "object", "decodedpayload", "payloadfields", "objectjson", "fields"],
            Self::Device => &["deveui", "devid", "deviceid", "device", "devicename"],
            Self::Application => &["appid", "applicationid", "application", "applicationname"],
            Self::Id => &["deduplicationid", "id"],
        }
    }
}

/// The columns that people name, instead of the usual names.
pub type ColumnNames = Vec<(Role, String)>;

/// The places of the columns of a file.
#[derive(Debug)]
pub(crate) struct Columns {
    places: [Option<usize>; Role::ALL.len()],
    encoding: Encoding,
    /// In records of our own, what kind of message it is and what came of it.
    kind: Option<usize>,
    outcome: Option<usize>,
}

impl Columns {
    /// Finds the columns in a header; `first` is a record, to see how payloads are written.
    pub(crate) fn of_csv(
        file: &str,
        header: &ByteRecord,
        first: Option<&ByteRecord>,
        names: &ColumnNames,
        encoding: Option<Encoding>,
    ) -> Result<Self, Error> {
        let header: Vec<_> = header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let places = places(file, &header, names)?;
        let place = |name: &str| header.iter().position(|column| column == name);
        let (kind, outcome) = (place("kind"), place("outcome"));
        let Some(payload) = places[Role::Payload as usize] else {
            return Err(missing(file, &header));
        };
        let sample = first.and_then(|record| record.get(payload)).unwrap_or_default();
        let is_own = kind.is_some() && outcome.is_some();
        let detected = || Encoding::detect(&header[payload], sample).or(is_own.then_some(Encoding::Base64));
        let encoding = encoding.or_else(detected).ok_or_else(|| {
            let column = &header[payload];
            Error::Invalid(format!(
                "the column `{column}` of {file} may be Base64 or hexadecimal: use --encoding base64 or --encoding hex"
            ))
        })?;
        Ok(Self { places, encoding, kind, outcome })
    }

    /// The uplink of a record.
    pub(crate) fn uplink(&self, record: &ByteRecord) -> Found {
        let at = |place: Option<usize>| place.and_then(|place| record.get(place)).map(<[u8]>::trim_ascii);
        if at(self.kind).is_some_and(|kind| kind != b"up") && self.outcome.is_some() {
            return Ok(None);
        }
        let part = |role: Role| at(self.places[role as usize]).filter(|cell| !cell.is_empty()).map(str::from_utf8);
        let part = |role: Role| part(role).transpose().map_err(|_| format!("its {} is not UTF-8", role.name()));
        let is_decoded = at(self.outcome).is_none_or(|outcome| outcome == b"decoded");
        let name = |role| Ok::<_, String>(Name::new(part(role)?.map(str::to_owned), None));
        Ok(Some(Stored {
            id: part(Role::Id)?.unwrap_or_default().to_owned(),
            application: name(Role::Application)?,
            device: name(Role::Device)?,
            payload: self.encoding.decode(part(Role::Payload)?.unwrap_or_default())?,
            port: part(Role::Port)?.map_or(Ok(0), |port| {
                port.parse().map_err(|_| format!("its port is `{port}`, not a number from 0 to 255"))
            })?,
            time: part(Role::Time)?.map(moment).transpose()?,
            object: part(Role::Object)?.filter(|_| is_decoded).map(object).transpose()?.flatten(),
        }))
    }
}

/// The place of each role in the names of a file.
pub(crate) fn places(
    file: &str,
    header: &[String],
    names: &ColumnNames,
) -> Result<[Option<usize>; Role::ALL.len()], Error> {
    let mut places = Role::ALL.map(|role| usual_place(header, role));
    for (role, name) in names {
        let place = header.iter().position(|column| column == name);
        let place =
            place.ok_or_else(|| Error::Invalid(format!("{file} has no column `{name}`: {}", listed(header))))?;
        places[*role as usize] = Some(place);
    }
    Ok(places)
}

fn usual_place(header: &[String], role: Role) -> Option<usize> {
    let plain = |name: &String| name.trim().replace('_', "").to_lowercase();
    let header: Vec<_> = header.iter().map(plain).collect();
    role.usual().iter().find_map(|usual| header.iter().position(|name| name == usual))
}

pub(crate) fn missing(file: &str, header: &[String]) -> Error {
    Error::Invalid(format!("{file} has no column with payloads: use --column payload=NAME; {}", listed(header)))
}

/// The first of the names, for messages.
fn listed(header: &[String]) -> String {
    let names: Vec<_> = header.iter().take(20).map(|name| format!("`{}`", workbench::truncate(name))).collect();
    format!("it has {}", names.join(", "))
}

/// A stored object as JSON; null is none.
pub(crate) fn object(text: &str) -> Result<Option<Box<RawValue>>, String> {
    let object: Box<RawValue> =
        serde_json::from_str(text).map_err(|error| format!("its object is not JSON: {error}"))?;
    Ok(Some(object).filter(|object| object.get() != "null"))
}

/// A time in RFC 3339, as PostgreSQL prints it, or in seconds or milliseconds since 1970.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("its time is `{}`, not one as in 2026-01-01T00:00:00Z", workbench::truncate(text));
    if let Ok(number) = text.parse::<i64>() {
        // Before 1973 in milliseconds, and after 5000 in seconds.
        let millis = if number.abs() < 100_000_000_000 { number.saturating_mul(1000) } else { number };
        return Ok(Timestamp::from_millis(millis));
    }
    let (day, time) = text.split_once([' ', 'T']).ok_or_else(wrong)?;
    let zone = match time.rfind(['+', '-']) {
        Some(at) if time.len() - at == 3 => ":00",
        Some(_) => "",
        None if time.ends_with(['Z', 'z']) => "",
        None => "Z",
    };
    format!("{day}T{time}{zone}").parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_networks_and_databases_write_them() {
        let expected: Timestamp = "2026-11-28T10:00:00.5Z".parse().unwrap();
        for text in [
            "2026-11-28T10:00:00.5Z",
            "2026-11-28 10:00:00.5+00",
            "2026-11-28 12:00:00.5+02:00",
            "2026-11-28 10:00:00.500",
            "1795860000500",
        ] {
            assert_eq!(moment(text), Ok(expected), "{text}");
        }
        assert_eq!(moment("1795860000").unwrap(), "2026-11-28T10:00:00Z".parse().unwrap());
        for text in ["", "yesterday", "2026-11-28", "28.11.2026 10:00"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
