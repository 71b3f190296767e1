//! The record of a device as part of another one, which is JSON: in base64. Records of older moves have it as JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

pub(super) fn serialize<S: Serializer>(record: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    STANDARD.encode(record).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if !raw.get().starts_with('"') {
        return Ok(raw.get().as_bytes().to_vec());
    }
    let text: String = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    STANDARD.decode(text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Leaving {
        #[serde(with = "super")]
        device: Vec<u8>,
    }

    #[test]
    fn keeps_bytes_and_reads_the_json_of_older_moves() {
        let text = serde_json::to_string(&Leaving { device: vec![0x0a, 0xff] }).unwrap();
        assert_eq!(text, r#"{"device":"Cv8="}"#);
        for (text, expected) in
            [(text.as_str(), &[0x0a, 0xff][..]), (r#"{"device": {"dev_id": "a"}}"#, br#"{"dev_id": "a"}"#)]
        {
            assert_eq!(serde_json::from_str::<Leaving>(text).unwrap().device, expected);
        }
        assert!(serde_json::from_str::<Leaving>(r#"{"device":"?"}"#).is_err());
    }
}
