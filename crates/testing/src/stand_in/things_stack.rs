//! A stand-in for The Things Stack's API and storage integration, in the documented forms.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

/// The API key that the stand-in accepts.
pub const THINGS_STACK_KEY: &str = "NNSXS.TESTKEY.SECRET";
/// The application that tests use, with its tenant.
pub const THINGS_STACK_APPLICATION: &str = "sensors@lab";
/// Maximum number of stored messages in a page.
const PAGE_MAX: usize = 1000;

/// The stand-in; it ends when this is dropped.
pub struct ThingsStackApi {
    address: SocketAddr,
    state: Shared,
    task: AbortHandle,
}

type Shared = Arc<Mutex<Contents>>;

#[derive(Default)]
struct Contents {
    links: HashMap<String, Value>,
    devices: HashMap<String, Value>,
    /// By `brand/model/firmware/band/uplink/decoder`.
    repository: HashMap<String, Value>,
    stored: Vec<Value>,
    storage_refusal: Option<(u16, Value)>,
    /// Number of pages returned before the refusal.
    pages_before_refusal: u32,
    downlinks: VecDeque<(String, Value)>,
    downlink_refusals: VecDeque<u16>,
    refuses_device_lists: bool,
    key: Option<String>,
    accepts_any_key: bool,
    /// The application that the key is of; none if it is that of a user, for all.
    key_application: Option<String>,
    /// Applications whose keys may not read the device repository.
    without_repository: Vec<String>,
    /// Number of calls about keys and settings that fail before others are answered.
    failures: u32,
    calls: u64,
}

impl ThingsStackApi {
    /// Starts the stand-in.
    pub async fn start() -> Self {
        let state = Shared::default();
        let router = Router::new()
            .route("/api/v3/auth_info", get(auth_info))
            .route("/api/v3/as/applications/{app}/link", get(link))
            .route("/api/v3/as/applications/{app}/devices/{device}", get(device))
            .route("/api/v3/applications/{app}/devices", get(devices))
            .route("/api/v3/applications/{app}/devices/{device}", get(device))
            .route("/api/v3/dr/applications/{app}/brands/{b}/models/{m}/{f}/{band}/formatters/{d}/{r}", get(formatter))
            .route("/api/v3/as/applications/{app}/packages/storage/uplink_message", get(stored))
            .route("/api/v3/as/applications/{app}/devices/{device}/down/{op}", post(down))
            .route("/api/v3/as/applications/{app}/webhooks/{hook}/devices/{device}/down/{op}", post(down_by_webhook))
            .with_state(state.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }).abort_handle();
        Self { address, state, task }
    }

    /// The URL, as settings take it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the default formatters of an application, without its tenant.
    pub fn set_default(&self, application: &str, formatters: &Value) {
        self.set_link(application, json!({"default_formatters": formatters}));
    }

    /// Sets the settings of an application on the Application Server: `default_formatters` and `skip_payload_crypto`.
    pub fn set_link(&self, application: &str, link: Value) {
        self.lock().links.insert(application.to_owned(), link);
    }

    /// Sets the API's record of a device: `ids`, `attributes`, `formatters`, `version_ids` and
    /// `skip_payload_crypto_override`.
    pub fn set_device(&self, application: &str, device: &str, known: Value) {
        self.lock().devices.insert(format!("{application}/{device}"), known);
    }

    /// Removes a device.
    pub fn remove_device(&self, application: &str, device: &str) {
        self.lock().devices.remove(&format!("{application}/{device}"));
    }

    /// Sets a formatter of the repository, by `brand/model/firmware/band/uplink/decoder`.
    pub fn set_repository(&self, path: &str, source: &str) {
        let formatter = json!({"formatter": "FORMATTER_JAVASCRIPT", "formatter_parameter": source});
        self.lock().repository.insert(path.to_owned(), formatter);
    }

    /// Adds a message to the storage.
    pub fn store(&self, message: Value) {
        self.lock().stored.push(message);
    }

    /// Lets the storage integration respond with an error, or not any more.
    pub fn refuse_storage(&self, refusal: Option<(u16, &str)>) {
        let body = |message| json!({"code": 7, "message": message, "details": []});
        self.lock().storage_refusal = refusal.map(|(status, message)| (status, body(message)));
    }

    /// Lets the storage integration respond with this status after some pages.
    pub fn refuse_storage_after(&self, pages: u32, status: u16) {
        self.refuse_storage(Some((status, "later")));
        self.lock().pages_before_refusal = pages;
    }

    /// Lets the next calls that queue downlinks fail with these statuses.
    pub fn refuse_downlinks(&self, statuses: impl IntoIterator<Item = u16>) {
        self.lock().downlink_refusals.extend(statuses);
    }

    /// Lets no key list devices.
    pub fn refuse_device_lists(&self) {
        self.lock().refuses_device_lists = true;
    }

    /// The oldest call that queued downlinks and was not returned yet: its path behind the application, and its body.
    pub fn next_downlink(&self) -> Option<(String, Value)> {
        self.lock().downlinks.pop_front()
    }

    /// Accepts another API key from now on.
    pub fn set_key(&self, key: &str) {
        self.lock().key = Some(key.to_owned());
    }

    /// From now on, the API key is that of an application, without its tenant.
    pub fn restrict_key(&self, application: &str) {
        self.lock().key_application = Some(application.to_owned());
    }

    /// Accepts every API key from now on.
    pub fn accept_any_key(&self) {
        self.lock().accepts_any_key = true;
    }

    /// Refuses calls for formatters of the device repository by an application.
    pub fn refuse_repository(&self, application: &str) {
        self.lock().without_repository.push(application.to_owned());
    }

    /// Lets the next calls about keys and settings of applications fail with 500.
    pub fn fail_calls(&self, count: u32) {
        self.lock().failures = count;
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.state.lock().unwrap()
    }
}

impl Drop for ThingsStackApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An uplink message of [`THINGS_STACK_APPLICATION`] in the documented form.
pub fn things_stack_uplink(device: &str, counter: u32, payload: &str) -> Value {
    let seconds = format!("{:02}:{:02}", counter / 60 % 60, counter % 60);
    json!({
        "end_device_ids": {
            "device_id": device, "application_ids": {"application_id": "sensors"}, "dev_eui": "0004A30B001C0530",
            "join_eui": "800000000000000C", "dev_addr": "00BCB929",
        },
        "correlation_ids": [format!("gs:uplink:{device}-{counter}")],
        "received_at": format!("2026-11-22T16:{seconds}.231022373Z"),
        "uplink_message": {
            "session_key_id": "AXA50tLUKKNKIPLUYOJPOQ==", "f_port": 2, "f_cnt": counter, "frm_payload": payload,
            "rx_metadata": [{
                "gateway_ids": {"gateway_id": "gtw1", "eui": "9C5C8E00001A05C4"}, "time": "2026-11-22T16:45:54Z",
                "timestamp": 2_463_457_000_u32, "rssi": -35, "channel_rssi": -35, "snr": 5.2,
                "uplink_token": "ChIKEA==", "channel_index": 2,
            }],
            "settings": {
                "data_rate": {"lora": {"bandwidth": 125000, "spreading_factor": 7, "coding_rate": "4/5"}},
                "frequency": "868300000", "timestamp": 2_463_457_000_u32,
            },
            "received_at": format!("2026-11-22T16:{seconds}.026368273Z"), "consumed_airtime": "0.056576s",
            "network_ids": {"net_id": "000013", "tenant_id": "lab"},
        },
    })
}

/// Counts a call; none for one without the right key.
fn authorize<'a>(state: &'a Shared, headers: &HeaderMap) -> Option<MutexGuard<'a, Contents>> {
    let mut contents = state.lock().unwrap();
    contents.calls += 1;
    let expected = format!("Bearer {}", contents.key.as_deref().unwrap_or(THINGS_STACK_KEY));
    let is_right = headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes() == expected.as_bytes());
    (is_right || contents.accepts_any_key).then_some(contents)
}

fn unauthenticated() -> Response {
    refusal(StatusCode::UNAUTHORIZED, "error:pkg/auth/rights:unauthenticated (API key not found)")
}

fn without_rights() -> Response {
    refusal(StatusCode::FORBIDDEN, "error:pkg/auth/rights:insufficient_application_rights (no rights)")
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"code": 5, "message": message, "details": []}))).into_response()
}

/// Returns an error of the server, as long as it is to fail.
fn failure(contents: &mut Contents) -> Option<Response> {
    contents.failures = contents.failures.checked_sub(1)?;
    Some(refusal(StatusCode::INTERNAL_SERVER_ERROR, "error:pkg/redis:store (store error)"))
}

fn found(value: Option<&Value>) -> Response {
    match value {
        Some(value) => Json(value.clone()).into_response(),
        None => refusal(StatusCode::NOT_FOUND, "error:pkg/redis:not_found (entity not found)"),
    }
}

/// The application that the key is of, if it is not one for all.
async fn auth_info(State(state): State<Shared>, headers: HeaderMap) -> Response {
    let Some(mut contents) = authorize(&state, &headers) else { return unauthenticated() };
    if let Some(failure) = failure(&mut contents) {
        return failure;
    }
    let entity_ids = match &contents.key_application {
        Some(id) => json!({"application_ids": {"application_id": id}}),
        None => json!({"user_ids": {"user_id": "alice"}}),
    };
    Json(json!({"api_key": {"api_key": {"id": "TESTKEY"}, "entity_ids": entity_ids}})).into_response()
}

async fn link(State(state): State<Shared>, Path(app): Path<String>, headers: HeaderMap) -> Response {
    let Some(mut contents) = authorize(&state, &headers) else { return unauthenticated() };
    if let Some(failure) = failure(&mut contents) {
        return failure;
    }
    if contents.key_application.as_ref().is_some_and(|own| *own != app) {
        return without_rights();
    }
    found(contents.links.get(&app))
}

async fn device(
    State(state): State<Shared>,
    Path((app, device)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let key = format!("{app}/{device}");
    authorize(&state, &headers).map_or_else(unauthenticated, |contents| found(contents.devices.get(&key)))
}

async fn devices(
    State(state): State<Shared>,
    Path(app): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let Some(contents) = authorize(&state, &headers) else { return unauthenticated() };
    if contents.refuses_device_lists {
        return without_rights();
    }
    let is_first = query.get("page").is_none_or(|page| page == "1");
    let known = contents.devices.iter().filter(|(key, _)| is_first && key.starts_with(&format!("{app}/")));
    let devices: Vec<&Value> = known.map(|(_, device)| device).collect();
    Json(json!({"end_devices": devices})).into_response()
}

async fn formatter(
    State(state): State<Shared>,
    Path((app, b, m, f, band, d, r)): Path<(String, String, String, String, String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(contents) = authorize(&state, &headers) else { return unauthenticated() };
    if contents.without_repository.contains(&app) {
        return without_rights();
    }
    found(contents.repository.get(&format!("{b}/{m}/{f}/{band}/{d}/{r}")))
}

async fn stored(
    State(state): State<Shared>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let Some(mut contents) = authorize(&state, &headers) else { return unauthenticated() };
    if contents.pages_before_refusal > 0 {
        contents.pages_before_refusal -= 1;
    } else if let Some((status, body)) = &contents.storage_refusal {
        return (StatusCode::from_u16(*status).unwrap(), Json(body.clone())).into_response();
    }
    let received = |message: &Value| message["received_at"].as_str().unwrap_or_default().to_owned();
    let after = query.get("after").cloned().unwrap_or_default();
    // Times of the same day and precision, so their texts are in order.
    let mut page: Vec<&Value> = contents.stored.iter().filter(|message| received(message) > after).collect();
    page.sort_by_key(|message| received(message));
    page.truncate(query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(PAGE_MAX));
    let selected = |message: &Value| match query.contains_key("field_mask") {
        true => json!({"end_device_ids": message["end_device_ids"], "received_at": message["received_at"]}),
        false => message.clone(),
    };
    page.into_iter()
        .map(|message| json!({"result": selected(message)}).to_string() + "\n")
        .collect::<String>()
        .into_response()
}

async fn down(
    State(state): State<Shared>,
    Path((_, device, op)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    queue(&state, &headers, format!("devices/{device}/down/{op}"), &body)
}

async fn down_by_webhook(
    State(state): State<Shared>,
    Path((_, hook, device, op)): Path<(String, String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    queue(&state, &headers, format!("webhooks/{hook}/devices/{device}/down/{op}"), &body)
}

fn queue(state: &Shared, headers: &HeaderMap, path: String, body: &[u8]) -> Response {
    let Some(mut contents) = authorize(state, headers) else { return unauthenticated() };
    if let Some(status) = contents.downlink_refusals.pop_front() {
        return refusal(StatusCode::from_u16(status).unwrap(), "error:pkg/applicationserver:refused (refused)");
    }
    contents.downlinks.push_back((path, serde_json::from_slice(body).unwrap()));
    Json(json!({})).into_response()
}
