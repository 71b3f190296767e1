//! A stand-in for ChirpStack's API.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use api::chirpstack::{
    Application, ApplicationListItem, CodecRuntime, Device, DeviceListItem, DeviceProfile, DeviceProfileListItem,
    DeviceQueueItem, Empty, EnqueueDeviceQueueItemRequest, EnqueueDeviceQueueItemResponse, GetApplicationRequest,
    GetApplicationResponse, GetDeviceProfileRequest, GetDeviceProfileResponse, GetDeviceRequest, GetDeviceResponse,
    ListApplicationsRequest, ListApplicationsResponse, ListDeviceProfileAdrAlgorithmsResponse,
    ListDeviceProfilesRequest, ListDeviceProfilesResponse, ListDevicesRequest, ListDevicesResponse, ListTenantsRequest,
    ListTenantsResponse, TenantListItem, Timestamp,
    application_service_server::{ApplicationService, ApplicationServiceServer},
    device_profile_service_server::{DeviceProfileService, DeviceProfileServiceServer},
    device_service_server::{DeviceService, DeviceServiceServer},
    tenant_service_server::{TenantService, TenantServiceServer},
};
use api::chirpstack_events::integration::UplinkEvent;
use prost::Message;
use tokio::{net::TcpListener, task::JoinHandle};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

/// The API key that the stand-in accepts.
pub const CHIRPSTACK_TOKEN: &str = "chirpstack-api-key";
/// The tenant of all profiles.
pub const CHIRPSTACK_TENANT: &str = "9bd51c73-8f62-4584-b65f-a8867a38c69b";
/// The application of all devices.
pub const CHIRPSTACK_APPLICATION: &str = "119e3472-d36a-4260-a167-b51f0bd25676";
/// Its name.
pub const CHIRPSTACK_APPLICATION_NAME: &str = "lab";

/// An `up` event as ChirpStack writes it to its Redis stream.
pub fn chirpstack_uplink(json: &serde_json::Value) -> Vec<u8> {
    serde_json::from_value::<UplinkEvent>(json.clone()).unwrap().encode_to_vec()
}

/// The JSON of an `up` event in a Redis stream.
pub fn chirpstack_uplink_json(value: &[u8]) -> serde_json::Value {
    serde_json::to_value(UplinkEvent::decode(value).unwrap()).unwrap()
}

/// A stand-in for ChirpStack's API; it ends when this is dropped.
pub struct ChirpStackApi {
    address: SocketAddr,
    state: Arc<Mutex<ChirpStackState>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct ChirpStackState {
    profiles: BTreeMap<String, (DeviceProfile, Timestamp)>,
    devices: BTreeMap<String, (Device, Timestamp)>,
    changes: i64,
    /// The downlinks in the queues of all devices, each with its id.
    queued: Vec<(String, DeviceQueueItem)>,
    enqueued: u64,
    broken_profiles: BTreeSet<String>,
    new_token: Option<String>,
    is_token_of_tenant: bool,
    /// Names of further applications, by their ids.
    applications: BTreeMap<String, String>,
}

impl ChirpStackApi {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ChirpStackState::default()));
        let service = Service(state.clone());
        let server = Server::builder()
            .add_service(DeviceProfileServiceServer::new(service.clone()))
            .add_service(DeviceServiceServer::new(service.clone()))
            .add_service(ApplicationServiceServer::new(service.clone()))
            .add_service(TenantServiceServer::new(service))
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { address, state, task }
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address, as settings take it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates or changes a device profile.
    pub fn set_profile(&self, id: &str, runtime: CodecRuntime, script: &str) {
        let profile = DeviceProfile {
            id: id.to_owned(),
            tenant_id: CHIRPSTACK_TENANT.to_owned(),
            name: format!("profile {id}"),
            payload_codec_runtime: runtime.into(),
            payload_codec_script: script.to_owned(),
            ..DeviceProfile::default()
        };
        let mut state = self.lock();
        let now = state.now();
        state.profiles.insert(id.to_owned(), (profile, now));
    }

    /// Deletes a device profile.
    pub fn delete_profile(&self, id: &str) {
        self.lock().profiles.remove(id);
    }

    /// Creates or changes a device.
    pub fn set_device(&self, dev_eui: &str, profile_id: &str, variables: &[(&str, &str)]) {
        let device = Device {
            dev_eui: dev_eui.to_owned(),
            name: format!("device {dev_eui}"),
            application_id: CHIRPSTACK_APPLICATION.to_owned(),
            device_profile_id: profile_id.to_owned(),
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Device::default()
        };
        let mut state = self.lock();
        let now = state.now();
        state.devices.insert(dev_eui.to_owned(), (device, now));
    }

    /// Says that a device joins through this join server.
    pub fn set_join_eui(&self, dev_eui: &str, join_eui: &str) {
        if let Some((device, _)) = self.lock().devices.get_mut(dev_eui) {
            device.join_eui = join_eui.to_owned();
        }
    }

    /// Moves a device to another application.
    pub fn move_device(&self, dev_eui: &str, application_id: &str) {
        if let Some((device, _)) = self.lock().devices.get_mut(dev_eui) {
            device.application_id = application_id.to_owned();
        }
    }

    /// The downlinks in the queues of all devices, each with its id, in order.
    pub fn queued(&self) -> Vec<(String, DeviceQueueItem)> {
        self.lock().queued.clone()
    }

    /// Answers every request for a device profile with an internal error.
    pub fn break_profile(&self, id: &str) {
        self.lock().broken_profiles.insert(id.to_owned());
    }

    /// Accepts another token in place of [`CHIRPSTACK_TOKEN`].
    pub fn replace_token(&self, token: &str) {
        self.lock().new_token = Some(token.to_owned());
    }

    /// From now on the token is that of a tenant, to which ChirpStack does not say that an object does not exist.
    pub fn restrict_token(&self) {
        self.lock().is_token_of_tenant = true;
    }

    /// Creates an application beside [`CHIRPSTACK_APPLICATION`].
    pub fn add_application(&self, id: &str, name: &str) {
        self.lock().applications.insert(id.to_owned(), name.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, ChirpStackState> {
        self.state.lock().unwrap()
    }
}

impl Drop for ChirpStackApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChirpStackState {
    /// A time that no earlier change has.
    fn now(&mut self) -> Timestamp {
        self.changes += 1;
        Timestamp { seconds: self.changes, nanos: 0 }
    }

    /// The names of all applications, by their ids.
    fn applications(&self) -> BTreeMap<String, String> {
        let mut all = self.applications.clone();
        all.insert(CHIRPSTACK_APPLICATION.to_owned(), CHIRPSTACK_APPLICATION_NAME.to_owned());
        all
    }
}

#[derive(Clone)]
struct Service(Arc<Mutex<ChirpStackState>>);

impl Service {
    fn read<M, T>(&self, request: Request<M>, read: impl FnOnce(&mut ChirpStackState, M) -> Option<T>) -> Answer<T> {
        let new_token = self.0.lock().unwrap().new_token.clone();
        let expected = format!("Bearer {}", new_token.as_deref().unwrap_or(CHIRPSTACK_TOKEN));
        if request.metadata().get("authorization").is_none_or(|token| token.to_str().ok() != Some(expected.as_str())) {
            return Err(Status::unauthenticated("InvalidToken"));
        }
        let mut state = self.0.lock().unwrap();
        let found = read(&mut state, request.into_inner());
        found.map(Response::new).ok_or_else(|| match state.is_token_of_tenant {
            true => Status::unauthenticated("Not allowed"),
            false => Status::not_found("Object does not exist"),
        })
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl DeviceProfileService for Service {
    async fn get(&self, request: Request<GetDeviceProfileRequest>) -> Answer<GetDeviceProfileResponse> {
        if self.0.lock().unwrap().broken_profiles.contains(&request.get_ref().id) {
            return Err(Status::internal("it is broken"));
        }
        self.read(request, |state, message| {
            let (profile, updated_at) = state.profiles.get(&message.id)?.clone();
            Some(GetDeviceProfileResponse { device_profile: Some(profile), updated_at: Some(updated_at) })
        })
    }

    async fn list(&self, request: Request<ListDeviceProfilesRequest>) -> Answer<ListDeviceProfilesResponse> {
        self.read(request, |state, message| {
            let item = |(id, (_, updated_at)): (&String, &(DeviceProfile, Timestamp))| DeviceProfileListItem {
                id: id.clone(),
                updated_at: Some(*updated_at),
            };
            let (offset, limit) = (message.offset as usize, message.limit as usize);
            let result = state.profiles.iter().skip(offset).take(limit).map(item).collect();
            Some(ListDeviceProfilesResponse { total_count: state.profiles.len() as u32, result })
        })
    }

    async fn list_adr_algorithms(&self, request: Request<Empty>) -> Answer<ListDeviceProfileAdrAlgorithmsResponse> {
        self.read(request, |_, _| Some(ListDeviceProfileAdrAlgorithmsResponse::default()))
    }
}

#[tonic::async_trait]
impl DeviceService for Service {
    async fn get(&self, request: Request<GetDeviceRequest>) -> Answer<GetDeviceResponse> {
        self.read(request, |state, message| {
            let (device, updated_at) = state.devices.get(&message.dev_eui)?.clone();
            Some(GetDeviceResponse { device: Some(device), updated_at: Some(updated_at) })
        })
    }

    async fn list(&self, request: Request<ListDevicesRequest>) -> Answer<ListDevicesResponse> {
        self.read(request, |state, message| {
            let item = |(dev_eui, (_, updated_at)): (&String, &(Device, Timestamp))| DeviceListItem {
                dev_eui: dev_eui.clone(),
                updated_at: Some(*updated_at),
            };
            let (offset, limit) = (message.offset as usize, message.limit as usize);
            let result = state.devices.iter().skip(offset).take(limit).map(item).collect();
            Some(ListDevicesResponse { total_count: state.devices.len() as u32, result })
        })
    }

    async fn enqueue(&self, request: Request<EnqueueDeviceQueueItemRequest>) -> Answer<EnqueueDeviceQueueItemResponse> {
        self.read(request, |state, message| {
            let item = message.queue_item?;
            state.devices.get(&item.dev_eui)?;
            if message.flush_queue {
                state.queued.retain(|(_, queued)| queued.dev_eui != item.dev_eui);
            }
            state.enqueued += 1;
            let id = format!("queue-item-{}", state.enqueued);
            state.queued.push((id.clone(), item));
            Some(EnqueueDeviceQueueItemResponse { id })
        })
    }
}

#[tonic::async_trait]
impl ApplicationService for Service {
    async fn get(&self, request: Request<GetApplicationRequest>) -> Answer<GetApplicationResponse> {
        self.read(request, |state, message| {
            let name = state.applications().remove(&message.id)?;
            Some(GetApplicationResponse { application: Some(Application { id: message.id, name }) })
        })
    }

    async fn list(&self, request: Request<ListApplicationsRequest>) -> Answer<ListApplicationsResponse> {
        self.read(request, |state, message| {
            let part = message.search.to_lowercase();
            let found = state.applications().into_iter().filter(|(_, name)| name.to_lowercase().contains(&part));
            let result: Vec<_> = found.map(|(id, name)| ApplicationListItem { id, name }).collect();
            let total_count = result.len() as u32;
            (message.tenant_id == CHIRPSTACK_TENANT).then_some(ListApplicationsResponse { total_count, result })
        })
    }
}

#[tonic::async_trait]
impl TenantService for Service {
    async fn list(&self, request: Request<ListTenantsRequest>) -> Answer<ListTenantsResponse> {
        self.read(request, |state, _| {
            let result = vec![TenantListItem { id: CHIRPSTACK_TENANT.to_owned() }];
            (!state.is_token_of_tenant).then_some(ListTenantsResponse { total_count: 1, result })
        })
    }
}
