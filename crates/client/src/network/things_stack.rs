//! A client of The Things Stack's API: payload formatters, stored uplinks, and downlink queues.

use std::collections::BTreeMap;

use reqwest::{Method, RequestBuilder, Url, header::ACCEPT};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Secret;

use crate::{Error, Result, Trust, transport::http::Http, without_credentials};

const SERVICE: &str = "API of The Things Stack";
/// The most that the API allows.
const DEVICES_PER_PAGE: &str = "1000";

/// The fields of [`EndDevice`].
const DEVICE_FIELDS: &str = "formatters,version_ids,skip_payload_crypto_override";

/// A client of a cluster of The Things Stack. Each call has the API key of its application. Limits and retries are
/// those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct ThingsStackClient {
    http: Http,
}

/// The payload formatters of a device or an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Formatters {
    /// Decodes uplinks, such as `FORMATTER_JAVASCRIPT`; empty for none.
    pub up_formatter: String,
    /// The source of a JavaScript formatter.
    pub up_formatter_parameter: String,
    /// Encodes and decodes downlinks.
    pub down_formatter: String,
    /// The source of a JavaScript formatter.
    pub down_formatter_parameter: String,
}

/// A device's settings on the Application Server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndDevice {
    /// Its own formatters; `None` if those of its application apply.
    pub formatters: Option<Formatters>,
    /// The model of the device in the device repository.
    pub version_ids: Option<VersionIds>,
    /// True if payloads stay encrypted in The Things Stack; `None` if the application decides.
    pub skip_payload_crypto_override: Option<bool>,
}

/// Attributes that the owner of a device has set.
pub type Attributes = BTreeMap<String, String>;

/// The names of a device in The Things Stack, as the API returns them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndDeviceIds {
    /// Its id in its application.
    pub device_id: String,
    /// Its DevEUI, in hexadecimal; empty if it has none.
    pub dev_eui: String,
    /// Its JoinEUI, in hexadecimal; empty if it has none.
    pub join_eui: String,
}

/// A version of a model in the device repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionIds {
    /// The maker.
    pub brand_id: String,
    /// As the device repository calls the product.
    pub model_id: String,
    /// As the device repository calls it.
    pub firmware_version: String,
    /// The band that it uses.
    pub band_id: String,
}

/// A formatter of the device repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RepositoryFormatter {
    /// The kind of formatter, such as `FORMATTER_JAVASCRIPT`.
    pub formatter: String,
    /// Its source.
    pub formatter_parameter: String,
}

/// Roles of a model's formatters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatterRole {
    /// Decodes uplinks.
    UplinkDecoder,
    /// Encodes downlinks.
    DownlinkEncoder,
    /// Decodes downlinks.
    DownlinkDecoder,
}

/// Operations on a device's downlink queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOperation {
    /// Downlinks are added.
    Push,
    /// Downlinks take the place of those that wait.
    Replace,
}

/// Selection of stored uplinks.
#[derive(Clone, Copy, Debug)]
pub struct StoredQuery<'a> {
    /// The time after which they were received.
    pub after: &'a str,
    /// Maximum number of uplinks to return.
    pub limit: u32,
    /// The fields to return besides ids and times; all if there is none.
    pub fields: Option<&'a str>,
}

/// An application's settings on the Application Server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The formatters of devices that have none.
    pub default_formatters: Option<Formatters>,
    /// True if payloads stay encrypted in The Things Stack.
    pub skip_payload_crypto: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthInfo {
    api_key: KeyAccess,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyAccess {
    entity_ids: KeyOwner,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyOwner {
    application_ids: ApplicationIds,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApplicationIds {
    application_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DevicePage {
    end_devices: Vec<Identified>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identified {
    ids: EndDeviceIds,
}

#[derive(Deserialize)]
struct StorageRecord {
    result: Box<RawValue>,
}

impl ThingsStackClient {
    /// Creates a client for a URL such as `https://eu1.cloud.thethings.network`; `trust` matters for `https` only.
    pub fn new(url: &str, trust: &Trust) -> Result<Self> {
        let expected = "http(s)://host(:port)";
        let invalid = || Error::Address { address: without_credentials(url).to_owned(), expected };
        let base = Url::parse(url).map_err(|_| invalid())?;
        let is_origin = base.path() == "/" && base.query().is_none() && base.username().is_empty();
        if !is_origin || !matches!(base.scheme(), "http" | "https") || base.password().is_some() {
            return Err(invalid());
        }
        Ok(Self { http: Http::new(SERVICE, base, trust)? })
    }

    /// The application that an API key is of, from the Identity Server; none if it is the key of a user or organization.
    pub async fn application_of(&self, key: &Secret) -> Result<Option<String>> {
        let info: AuthInfo = self.http.json(self.get(key, &["api", "v3", "auth_info"], &[])).await?;
        Ok(Some(info.api_key.entity_ids.application_ids.application_id).filter(|id| !id.is_empty()))
    }

    /// The default formatters of an application, and whether they see payloads.
    pub async fn link(&self, key: &Secret, application: &str) -> Result<Link> {
        let path = ["api", "v3", "as", "applications", application, "link"];
        self.http.json(self.get(key, &path, &[("field_mask", "default_formatters,skip_payload_crypto")])).await
    }

    /// Formatters and version of a device, and whether they see payloads.
    pub async fn device(&self, key: &Secret, application: &str, device: &str) -> Result<EndDevice> {
        let path = ["api", "v3", "as", "applications", application, "devices", device];
        self.http.json(self.get(key, &path, &[("field_mask", DEVICE_FIELDS)])).await
    }

    /// The attributes of a device, from the Identity Server.
    pub async fn attributes(&self, key: &Secret, application: &str, device: &str) -> Result<Attributes> {
        let path = ["api", "v3", "applications", application, "devices", device];
        Ok(self.http.json::<Described>(self.get(key, &path, &[("field_mask", "attributes")])).await?.attributes)
    }

    /// The ids of an application's devices; the first page is 1, and one behind the last is empty.
    pub async fn devices(&self, key: &Secret, application: &str, page: u32) -> Result<Vec<EndDeviceIds>> {
        let path = ["api", "v3", "applications", application, "devices"];
        let page = page.to_string();
        let query = [("field_mask", "ids"), ("limit", DEVICES_PER_PAGE), ("page", page.as_str())];
        let page: DevicePage = self.http.json(self.get(key, &path, &query)).await?;
        Ok(page.end_devices.into_iter().map(|device| device.ids).collect())
    }

    /// A formatter of the device repository.
    pub async fn repository_formatter(
        &self,
        key: &Secret,
        application: &str,
        version: &VersionIds,
        role: FormatterRole,
    ) -> Result<RepositoryFormatter> {
        let VersionIds { brand_id, model_id, firmware_version, band_id } = version;
        let (direction, role) = match role {
            FormatterRole::UplinkDecoder => ("uplink", "decoder"),
            FormatterRole::DownlinkEncoder => ("downlink", "encoder"),
            FormatterRole::DownlinkDecoder => ("downlink", "decoder"),
        };
        let model = ["brands", brand_id, "models", model_id, firmware_version, band_id];
        let path = [&["api", "v3", "dr", "applications", application], &model[..], &["formatters", direction, role]];
        self.http.json(self.get(key, &path.concat(), &[])).await
    }

    /// Stored uplinks that were received after a time, oldest first.
    pub async fn stored_uplinks(
        &self,
        key: &Secret,
        application: &str,
        StoredQuery { after, limit, fields }: StoredQuery<'_>,
    ) -> Result<Vec<Box<RawValue>>> {
        let path = ["api", "v3", "as", "applications", application, "packages", "storage", "uplink_message"];
        let limit = limit.to_string();
        let mut query = vec![("after", after), ("order", "received_at"), ("limit", limit.as_str())];
        query.extend(fields.map(|fields| ("field_mask", fields)));
        let request = self.get(key, &path, &query).header(ACCEPT, "text/event-stream");
        let items = self.http.json_stream::<StorageRecord>(request).await?;
        Ok(items.into_iter().map(|item| item.result).collect())
    }

    /// Changes the downlink queue of a device; `body` is `{"downlinks": […]}`. With the id of a webhook, its key can
    /// have the right for that only.
    pub async fn queue_downlinks(
        &self,
        key: &Secret,
        (application, webhook, device): (&str, Option<&str>, &str),
        operation: QueueOperation,
        body: Vec<u8>,
    ) -> Result<()> {
        let operation = match operation {
            QueueOperation::Push => "push",
            QueueOperation::Replace => "replace",
        };
        let mut path = vec!["api", "v3", "as", "applications", application];
        path.extend(webhook.into_iter().flat_map(|id| ["webhooks", id]));
        path.extend(["devices", device, "down", operation]);
        let request = self.http.request(Method::POST, &path).bearer_auth(key.expose());
        self.http.done(request.header("content-type", "application/json").body(body)).await
    }

    fn get(&self, key: &Secret, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.http.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request_to(Method::GET, url).bearer_auth(key.expose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_address_of_a_cluster_and_nothing_else() {
        // The client is built with the process's crypto provider only for valid addresses.
        for url in ["", "eu1.cloud.thethings.network", "https://host/api", "https://user@host", "ftp://host"] {
            let error = ThingsStackClient::new(url, &Trust::System).err();
            assert!(matches!(error, Some(Error::Address { .. })), "{url}: {error:?}");
        }
    }
}
