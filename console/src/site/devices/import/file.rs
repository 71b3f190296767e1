//! A file of devices between its pages: sealed, because it may have keys.

use std::{str, time::Duration};

use api::rest::handler::Device;
use device_file::{Plan, Row, read, write_csv};
use server::{seal::Sealed, status::ErrorChain};
use types::Timestamp;

use crate::{Error, Result, site::viewer::InApplication};

/// Maximum size of a file, in bytes: sealed and in base64, it fits into a form.
pub(super) const FILE_BYTES_MAX: usize = 1_500_000;
/// Maximum number of devices in a file.
pub(super) const ROWS_MAX: usize = 10_000;
/// Time for which a preview can be confirmed.
const LIFETIME: Duration = Duration::from_secs(3600);

/// A file, and what somebody was told that it would do.
pub(in crate::site::devices) struct ImportFile {
    text: String,
    /// True if EUIs and addresses of registered devices may change.
    pub(super) is_override: bool,
    opened: Timestamp,
    /// A number that is used once.
    nonce: String,
    /// The hash of what it would do; empty if nobody was told yet.
    promised: String,
}

impl ImportFile {
    /// A file that somebody has entered.
    pub(super) fn typed(request: &InApplication, text: &str, is_override: bool) -> Result<Self> {
        // Browsers send each line end with two characters.
        let text = text.replace("\r\n", "\n");
        if text.trim().is_empty() {
            return Err(invalid("must be entered, or chosen as a file"));
        }
        if text.len() > FILE_BYTES_MAX {
            return Err(invalid("must have at most 1.5 MB: split the file, or use `airlock devices import`"));
        }
        let (opened, nonce) = fresh(request);
        Ok(Self { text, is_override, opened, nonce, promised: String::new() })
    }

    /// A file that brings deleted devices back, with their keys; none if they are too many for a page.
    pub(in crate::site::devices) fn of(request: &InApplication, devices: &[Device]) -> Option<Self> {
        let mut bytes = Vec::new();
        // Unlike JSON, it says also what is not so.
        write_csv(&mut bytes, devices.iter(), true).ok()?;
        let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= FILE_BYTES_MAX)?;
        let (opened, nonce) = fresh(request);
        Some(Self { text, is_override: false, opened, nonce, promised: String::new() })
    }

    /// The file that a preview has brought back.
    pub(super) fn sealed(request: &InApplication, sealed: &str) -> Result<Self> {
        let gone = || invalid("must be entered again: this preview is not yours, or too old");
        let console = &request.console;
        let sealed = Sealed::new(sealed);
        let bytes = console.keys.open("file", &context(request), &sealed).map_err(|_| gone())?;
        let file = Self::read(&bytes).ok_or_else(gone)?;
        if file.opened.plus(LIFETIME) > console.clock.now() { Ok(file) } else { Err(gone()) }
    }

    /// Seals the file with what it would do, as a file of which nobody has sent a form yet.
    pub(in crate::site::devices) fn seal(&self, request: &InApplication, plan: &Plan) -> Result<String> {
        let console = &request.console;
        let (opened, nonce) = fresh(request);
        let (is_override, promised) = (u8::from(self.is_override), hash(request, plan));
        let head = format!("{} {is_override} {nonce} {promised}\n", opened.as_millis());
        let bytes = [head.as_bytes(), self.text.as_bytes()].concat();
        Ok(console.keys.seal(&context(request), &bytes, console.random.as_ref())?.as_str().to_owned())
    }

    /// Returns true if this is what somebody was told that it would do.
    pub(super) fn promises(&self, request: &InApplication, plan: &Plan) -> bool {
        self.promised == hash(request, plan)
    }

    /// The form with which it is imported, as nobody else's is called.
    pub(super) fn form(&self, request: &InApplication) -> String {
        format!("{}/{}/import/{}", request.user_id(), request.app_id(), self.nonce)
    }

    /// A field by which a form with the same devices is recognized.
    pub(in crate::site::devices) fn mark(&self, request: &InApplication) -> (String, String) {
        let hash = request.console.keys.hash(&format!("file of {}", context(request)), self.text.as_bytes());
        ("file".to_owned(), hash.as_str().to_owned())
    }

    pub(super) fn rows(&self) -> Result<Vec<Row>> {
        read(self.text.as_bytes(), None, ROWS_MAX).map_err(|error| invalid(ErrorChain(&error).to_string()))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, text) = str::from_utf8(bytes).ok()?.split_once('\n')?;
        let mut parts = head.split(' ');
        let opened = Timestamp::from_millis(parts.next()?.parse().ok()?);
        let is_override = parts.next()? == "1";
        let (nonce, promised) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self { text: text.to_owned(), is_override, opened, nonce, promised })
    }
}

/// The time, and a number that is used once.
fn fresh(request: &InApplication) -> (Timestamp, String) {
    let console = &request.console;
    (console.clock.now(), hex::encode(console.random.array::<16>()))
}

/// Ties a sealed file to a user and an application.
fn context(request: &InApplication) -> String {
    format!("devices that {} imports into {}", request.user_id(), request.app_id())
}

fn hash(request: &InApplication, plan: &Plan) -> String {
    let steps = plan
        .planned
        .iter()
        .map(|planned| format!("{} {} {}\n", planned.device.dev_id, planned.step.name(), planned.changed.join(",")));
    let text: String = steps.collect();
    request.console.keys.hash("plan of an import", text.as_bytes()).as_str().to_owned()
}

fn invalid(must: impl Into<String>) -> Error {
    Error::Invalid { what: "Devices", must: must.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_as_it_was() {
        let file = ImportFile::read(b"1000 1 nonce hash\ndev_id\n\ndev-1\n").unwrap();
        assert_eq!((file.text.as_str(), file.is_override), ("dev_id\n\ndev-1\n", true));
        assert_eq!((file.nonce.as_str(), file.promised.as_str()), ("nonce", "hash"));
        assert_eq!(file.opened, Timestamp::from_millis(1000));
        for bytes in [&b""[..], b"1000 1 nonce\ntext", b"x 1 nonce hash\ntext", b"1000 1 nonce hash"] {
            assert!(ImportFile::read(bytes).is_none());
        }
    }
}
