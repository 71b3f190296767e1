//! Records as JSON, with the names that the columns of files have. What is empty is left out.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use crate::Record;

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("recorded", &self.id.recorded())?;
        map.serialize_entry("received", &self.received)?;
        map.serialize_entry("app_id", &self.app_id)?;
        map.serialize_entry("dev_id", &self.dev_id)?;
        map.serialize_entry("kind", self.kind.as_str())?;
        map.serialize_entry("port", &self.port)?;
        map.serialize_entry("counter", &self.counter)?;
        map.serialize_entry("confirmed", &self.confirmed)?;
        map.serialize_entry("is_retry", &self.is_retry)?;
        map.serialize_entry("payload", &STANDARD.encode(&self.payload))?;
        entry(&mut map, "metadata", &self.metadata)?;
        entry(&mut map, "extra", &self.extra)?;
        self.serialize_functions(&mut map)?;
        map.serialize_entry("outcome", self.outcome.as_str())?;
        entry(&mut map, "result", &self.result)?;
        entry(&mut map, "normalized", &self.normalized)?;
        self.failure.as_ref().map_or(Ok(()), |failure| map.serialize_entry("failure", failure))?;
        entry(&mut map, "logs", &self.logs)?;
        entry(&mut map, "warnings", &self.warnings)?;
        map.serialize_entry("fuel", &self.fuel)?;
        self.microseconds.map_or(Ok(()), |microseconds| map.serialize_entry("microseconds", &microseconds))?;
        map.serialize_entry("revision", &self.revision)?;
        self.corrects.map_or(Ok(()), |corrects| map.serialize_entry("corrects", &corrects))?;
        map.end()
    }
}

impl Record {
    /// Numbers of 64 bits are texts, because many readers of JSON round them.
    fn serialize_functions<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.seed.map_or(Ok(()), |seed| map.serialize_entry("seed", &seed.to_string()))?;
        self.functions.map_or(Ok(()), |hash| map.serialize_entry("functions", &hex::encode(hash)))?;
        self.version.map_or(Ok(()), |version| map.serialize_entry("version", &version))?;
        self.limits.map_or(Ok(()), |limits| map.serialize_entry("limits", &hex::encode(limits)))
    }
}

/// A member that is JSON already. What is not, because the file was changed, becomes a text.
fn entry<M: SerializeMap>(map: &mut M, name: &str, json: &str) -> Result<(), M::Error> {
    match serde_json::from_str::<&RawValue>(json) {
        _ if json.is_empty() => Ok(()),
        Ok(raw) => map.serialize_entry(name, raw),
        Err(_) => map.serialize_entry(name, json),
    }
}
