//! The form of a user's first application: ids, and a sample of payload functions with an uplink for them.

use types::{AppId, DevId};

use crate::{Error, Result};

/// The id of the device that the form suggests.
const DEVICE: &str = "my-first-device";

/// Payload functions, and an uplink that they decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Names it in the form.
    pub(crate) name: &'static str,
    /// A name for people.
    pub(crate) label: &'static str,
    pub(crate) payload_format: &'static str,
    pub(crate) decoder: &'static str,
    pub(crate) payload: &'static [u8],
    pub(crate) port: u32,
}

/// All samples; the form chooses the first one.
pub(crate) const SAMPLES: [Sample; 2] = [
    Sample {
        name: "decoder",
        label: "Decoder in JavaScript: temperature and humidity",
        payload_format: "custom",
        decoder: "// Two bytes are the temperature in hundredths of a degree, one is the humidity in percent.
function Decoder(bytes, port) {
  return {
    temperature: (bytes[0] << 24 >> 16 | bytes[1]) / 100,
    humidity: bytes[2]
  };
}
",
        payload: &[0x09, 0x5C, 0x37],
        port: 1,
    },
    Sample {
        name: "cayenne",
        label: "Cayenne LPP, without a function",
        payload_format: "cayennelpp",
        decoder: "",
        payload: &[0x01, 0x67, 0x00, 0xEF, 0x02, 0x68, 0x6E],
        port: 1,
    },
];

/// The form as somebody filled it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstApplicationForm {
    pub(crate) app_id: String,
    pub(crate) dev_id: String,
    sample: String,
}

/// The entries that the form asks for.
#[derive(Clone, Debug)]
pub(crate) struct FirstApplication {
    pub(crate) app_id: AppId,
    pub(crate) dev_id: DevId,
    pub(crate) sample: Sample,
}

impl FirstApplicationForm {
    /// The form before anybody types. Ids of applications are unique on the server, so it has the user's name.
    pub(crate) fn suggested(username: &str) -> Self {
        let app_id = format!("{username}-app").parse().map(|app_id: AppId| app_id.to_string()).unwrap_or_default();
        Self { app_id, dev_id: DEVICE.to_owned(), sample: SAMPLES[0].name.to_owned() }
    }

    /// The form as it was sent.
    pub(crate) fn sent<'a>(value: impl Fn(&str) -> &'a str) -> Self {
        let typed = |name| value(name).trim().to_owned();
        Self { app_id: typed("app_id"), dev_id: typed("dev_id"), sample: typed("sample") }
    }

    pub(crate) fn is_chosen(&self, sample: &Sample) -> bool {
        self.sample == sample.name
    }

    pub(crate) fn parse(&self) -> Result<FirstApplication> {
        let must = || "must have 2 to 36 lowercase letters, digits, dashes or underscores".to_owned();
        let invalid = |what| Error::Invalid { what, must: must() };
        let app_id = self.app_id.parse().map_err(|_| invalid("Application id"))?;
        let dev_id = self.dev_id.parse().map_err(|_| invalid("Device id"))?;
        let sample = SAMPLES.into_iter().find(|sample| self.is_chosen(sample));
        let unknown = || Error::Invalid { what: "Functions", must: "must be one of the choices".to_owned() };
        Ok(FirstApplication { app_id, dev_id, sample: sample.ok_or_else(unknown)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_form_suggests_can_be_sent() {
        let first = FirstApplicationForm::suggested("alice").parse().unwrap();
        assert_eq!((first.app_id.as_str(), first.dev_id.as_str()), ("alice-app", DEVICE));
        assert_eq!(first.sample, SAMPLES[0]);
        // The longest name leaves no room.
        assert_eq!(FirstApplicationForm::suggested(&"a".repeat(36)).app_id, "");
    }

    #[test]
    fn what_is_not_valid_is_named() {
        let form = |fields: [&'static str; 3]| {
            FirstApplicationForm::sent(|name| match name {
                "app_id" => fields[0],
                "dev_id" => fields[1],
                _ => fields[2],
            })
        };
        for (fields, what) in [
            (["<b>", "my-device", "decoder"], "Application id"),
            (["my-app", "", "decoder"], "Device id"),
            (["my-app", "my-device", "other"], "Functions"),
        ] {
            let error = form(fields).parse().unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
        assert_eq!(form([" my-app ", "my-device", "cayenne"]).parse().unwrap().sample.payload_format, "cayennelpp");
    }
}
