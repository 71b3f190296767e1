//! The columns of a table that have the parts of an uplink, by their names.

mod encoding;
mod moment;

use std::str;

use csv::ByteRecord;
use serde_json::value::RawValue;

pub use self::encoding::Encoding;
pub(crate) use self::moment::moment;
use crate::{
    Error, RecordedUplink,
    own::{self, Own},
    stored::{Correction, Name, StoredResult},
};

/// A part of an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The payload.
    Payload,
    /// The LoRaWAN port.
    Port,
    /// The time at which it was received.
    Time,
    /// The object that was stored.
    Object,
    /// The device.
    Device,
    /// The application.
    Application,
    /// The id of the uplink in its source.
    Id,
    /// The profile of the device.
    Profile,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Payload, Self::Port, Self::Time, Self::Object, Self::Device, Self::Application, Self::Id, Self::Profile];

    /// Returns the name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Port => "port",
            Self::Time => "time",
            Self::Object => "object",
            Self::Device => "device",
            Self::Application => "application",
            Self::Id => "id",
            Self::Profile => "profile",
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
            Self::Profile => &["deviceprofilename", "deviceprofileid"],
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
    /// Those that only a file of our own has.
    own: Option<own::Places>,
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
        let own = own::places(&header);
        let Some(payload) = places[Role::Payload as usize] else {
            return Err(missing(file, &header));
        };
        let sample = first.and_then(|record| record.get(payload)).unwrap_or_default();
        // Whatever one of ours looks like.
        let of_own = (own.is_some() && header[payload] == own::PAYLOAD).then_some(Encoding::Base64);
        let detected = || of_own.or_else(|| Encoding::detect(&header[payload], sample));
        let encoding = encoding.or_else(detected).ok_or_else(|| {
            let column = &header[payload];
            Error::Invalid(format!(
                "the column `{column}` of {file} may be Base64 or hexadecimal: use --encoding base64 or --encoding hex"
            ))
        })?;
        Ok(Self { places, encoding, own })
    }

    pub(crate) fn uplink(&self, record: &ByteRecord) -> StoredResult {
        let own = |column| self.own_text(record, column);
        if own(own::Column::Kind)?.is_some_and(|kind| kind != "up") {
            return Ok(None);
        }
        let part = |role: Role| text(record, self.places[role as usize], role.name());
        let is_decoded = own(own::Column::Outcome)?.is_none_or(|outcome| outcome == "decoded");
        let name = |role| Ok::<_, String>(Name::new(part(role)?.map(str::to_owned), None));
        let uplink = RecordedUplink {
            id: part(Role::Id)?.unwrap_or_default().to_owned(),
            application: name(Role::Application)?,
            device: name(Role::Device)?,
            payload: self.encoding.decode(part(Role::Payload)?.unwrap_or_default())?,
            port: part(Role::Port)?.map_or(Ok(0), |port| {
                port.parse().map_err(|_| format!("its port is `{port}`, not a number from 0 to 255"))
            })?,
            time: part(Role::Time)?.map(moment).transpose()?,
            object: part(Role::Object)?.filter(|_| is_decoded).map(object).transpose()?.flatten(),
            profile: name(Role::Profile)?,
            ..RecordedUplink::default()
        };
        Ok(Some(match self.own {
            Some(_) => Own::read(own)?.complete(uplink),
            None => uplink,
        }))
    }

    /// Reads the correction in a record, if it is one. A record that cannot be read is reported with its uplink.
    pub(crate) fn correction(&self, record: &ByteRecord) -> Option<Correction> {
        self.own.as_ref()?;
        self.own_text(record, own::Column::Corrects).ok()??;
        Own::read(|column| self.own_text(record, column)).ok()?.correction()
    }

    fn own_text<'r>(&self, record: &'r ByteRecord, column: own::Column) -> Result<Option<&'r str>, String> {
        text(record, self.own.and_then(|places| places[column as usize]), column.name())
    }
}

/// The text of a cell; none if it is empty.
fn text<'r>(record: &'r ByteRecord, place: Option<usize>, name: &str) -> Result<Option<&'r str>, String> {
    let cell = place.and_then(|place| record.get(place)).map(<[u8]>::trim_ascii).filter(|cell| !cell.is_empty());
    cell.map(str::from_utf8).transpose().map_err(|_| format!("its {name} is not UTF-8"))
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
