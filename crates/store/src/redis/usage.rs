//! Size of each tag. Servers have no list of the tags, so all their keys are gone through in steps.

use redis::cmd;

use super::Redis;
use crate::{Error, Tag, Usage, UsageCursor, UsagePage};

/// Approximate number of keys that a server looks at for a page: a millisecond of its time.
const SCAN_KEYS: usize = 1000;
const WHAT: &str = "read how much is stored";

impl Redis {
    /// A page of one server: its address and the cursor of `SCAN` are where the next one begins.
    pub(super) async fn usage_page(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        let failed = |error| Error::unavailable(WHAT, error);
        let mut connection = self.connection.clone();
        let (part, at) = from.and_then(|UsageCursor(text)| text.split_once(' ')).unwrap_or(("", "0"));
        let parts = connection.parts().await.map_err(failed)?;
        // One that is gone is passed over; its entries are elsewhere now.
        let Some(number) = parts.iter().position(|other| other.as_str() >= part) else {
            return Ok(UsagePage::default());
        };
        let at = if parts[number] == part { at } else { "0" };
        let mut scan = cmd("SCAN");
        scan.arg(at).arg("MATCH").arg(self.names.all_entries()).arg("COUNT").arg(SCAN_KEYS);
        let (next, names): (String, Vec<String>) = connection.ask_part(&parts[number], scan).await.map_err(failed)?;
        let tags: Vec<Tag> = names.iter().filter_map(|name| self.names.tag_of(name)).collect();
        let bytes = self.bytes_of(&tags).await?;
        let next = match next.as_str() {
            "0" => parts.get(number + 1).map(|part| format!("{part} 0")),
            at => Some(format!("{} {at}", parts[number])),
        };
        let tags = tags.into_iter().zip(bytes).map(|(tag, bytes)| Usage { tag, bytes });
        Ok(UsagePage { tags: tags.collect(), next: next.map(UsageCursor) })
    }

    /// Returns the sizes of these tags in bytes.
    pub(super) async fn bytes_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        let mut bytes = Vec::with_capacity(tags.len());
        for tag in tags {
            bytes.push(self.run(WHAT, self.scripts.usage(tag)).await?);
        }
        Ok(bytes)
    }
}
