//! Decodes and encodes payloads in the format of their application.

use std::{collections::BTreeMap, sync::Arc};

use futures::future;
use runtime::{Busy, Call, Dialect, EntryPoint, Failure, Functions, LimitsByName, Pool, Priority, Slot, Tenant, Value};
use serde_json::value::RawValue;
use server::{
    ledger::{Owner, Owners},
    usage::Usage,
};
use types::AppId;

use super::{
    cayenne,
    expected_fuel::ExpectedFuel,
    functions_cache::FunctionsCache,
    limits::HashedLimits,
    message::Payload,
    outcome::{DecodeError, Decoded, Encoded, Validity},
};
use crate::{
    Error,
    error::FunctionError,
    registry::application::{Application, ApplicationSummary, Conversion},
    settings::Settings,
    status::cost::Cost,
};

/// Converts payloads to fields and back, with an application's functions or as Cayenne LPP.
pub struct Payloads {
    pool: Arc<Pool>,
    functions: FunctionsCache,
    dry_run_functions: FunctionsCache,
    owners: Option<Arc<Owners>>,
}

/// Priority of a run of functions, and the usage that it is charged to.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Live or a dry run.
    pub priority: Priority,
    /// Receives the cost of loading and running the functions, even if they fail.
    pub usage: &'a Usage,
}

impl Payloads {
    /// Runs functions in `pool`; `settings` say how many stay loaded, and within which limits they run.
    pub fn new(pool: impl Into<Arc<Pool>>, settings: &Settings) -> Result<Self, Error> {
        let pool = pool.into();
        let limits = pool.engine().limits();
        let functions = FunctionsCache::new(settings, limits)?;
        let dry_run_functions = FunctionsCache::for_dry_runs(settings, limits)?;
        Ok(Self { pool, functions, dry_run_functions, owners: None })
    }

    /// Has the applications of a user share the turns of one owner. Without, each is an owner of its own.
    pub fn with_owners(self, owners: Arc<Owners>) -> Self {
        Self { owners: Some(owners), ..self }
    }

    /// The limits within which an application's functions run.
    pub(crate) fn limits(&self, app_id: &AppId) -> &HashedLimits {
        self.functions.limits(app_id)
    }

    /// The limits of all applications, by the first bytes of their hashes, as history has them.
    pub fn all_limits(&self) -> BTreeMap<[u8; 8], LimitsByName> {
        self.functions.all_limits().map(|limits| (limits.prefix(), limits.by_name())).collect()
    }

    /// Checks that an application's functions can be loaded, which is charged to `usage`; [`Error::Function`] says why
    /// not. Returns the dialect of the first of them; none if there are none.
    pub(crate) async fn check(&self, application: &Application, usage: &Usage) -> Result<Option<Dialect>, Error> {
        if !application.has_functions() {
            return Ok(None);
        }
        let app_id = &application.summary().app_id;
        let (tenant, set) = (self.tenant(app_id, Priority::DryRun), (application, self.limits(app_id)));
        let functions = self.functions.get_or_load(&tenant, set, &self.pool, usage).await?;
        let functions = functions.map_err(|failure| cannot_load(failure, application))?;
        Ok(Slot::ALL.into_iter().find_map(|slot| functions.dialect(slot)))
    }

    /// Decodes, converts and validates a payload. A function that fails is part of the result; a full queue is an
    /// error.
    pub async fn decode(&self, application: &Application, payload: &Payload, run: Run<'_>) -> Result<Decoded, Error> {
        if let Some(decoded) = self.decode_if_loaded(application.summary(), payload, run).await? {
            return Ok(decoded);
        }
        let app_id = &application.summary().app_id;
        let tenant = self.tenant(app_id, run.priority);
        let functions = self.load(&tenant, (application, self.limits(app_id)), run.usage).await?;
        self.run(&tenant, functions, payload, run.usage).await
    }

    /// Like [`Self::decode`], but without the sources. Returns none if they are needed, because the functions are not
    /// loaded.
    pub async fn decode_if_loaded(
        &self,
        application: &ApplicationSummary,
        payload: &Payload,
        run: Run<'_>,
    ) -> Result<Option<Decoded>, Error> {
        match application.conversion() {
            Conversion::None => Ok(Some(Decoded::default())),
            Conversion::CayenneLpp => decode_cayenne(bytes(payload)).map(Some),
            Conversion::Custom(_) if !application.has_uplink_function => Ok(Some(Decoded::default())),
            Conversion::Custom(_) => match self.functions.get(application) {
                Some(functions) => self
                    .run(&self.tenant(&application.app_id, run.priority), functions, payload, run.usage)
                    .await
                    .map(Some),
                None => Ok(None),
            },
        }
    }

    /// Decodes the first of several payloads of one application within these limits, at least one. `fuel_each` is what
    /// one is expected to use, if these functions ran before.
    pub(crate) async fn decode_several(
        &self,
        (application, limits): (&Application, &HashedLimits),
        payloads: &[Payload],
        fuel_each: Option<u64>,
        run: Run<'_>,
    ) -> Result<Vec<Decoded>, Error> {
        let summary = application.summary();
        if !matches!(summary.conversion(), Conversion::Custom(_)) || !summary.has_uplink_function {
            let decode = |payload| async move { self.decode(application, payload, run).await };
            return future::try_join_all(payloads.iter().map(decode)).await;
        }
        let tenant = self.tenant(&summary.app_id, run.priority);
        let functions = match self.functions.get_within(summary, limits) {
            Some(functions) => functions,
            None => self.load(&tenant, (application, limits), run.usage).await?,
        };
        match functions {
            Ok(functions) => {
                let calls = payloads.iter().map(|payload| call(EntryPoint::Uplink, payload, bytes(payload))).collect();
                Ok(self.run_several((&tenant, functions), calls, fuel_each, run.usage).await?)
            }
            Err(failure) => Ok(payloads.iter().map(|_| DecodeError::Function(failure.clone()).into()).collect()),
        }
    }

    /// Decodes the first of several payloads of one application. None of them if there is nothing to share, because
    /// they are decoded without functions, or because the functions are not loaded.
    pub(crate) async fn decode_several_if_loaded(
        &self,
        application: &ApplicationSummary,
        payloads: &[&Payload],
        fuel: &ExpectedFuel,
        run: Run<'_>,
    ) -> Result<Vec<Decoded>, Busy> {
        let runs_functions = matches!(application.conversion(), Conversion::Custom(_));
        let loaded = self.functions.get(application).filter(|_| runs_functions && application.has_uplink_function);
        let Some(Ok(functions)) = loaded else { return Ok(Vec::new()) };
        let calls = payloads.iter().map(|payload| call(EntryPoint::Uplink, payload, bytes(payload))).collect();
        let (tenant, hash) = (self.tenant(&application.app_id, run.priority), application.functions_hash);
        let decoded = self.run_several((&tenant, functions), calls, fuel.expected(hash), run.usage).await?;
        fuel.add(hash, decoded.iter().map(|decoded| decoded.cost.fuel));
        Ok(decoded)
    }

    /// Runs the first of several calls, at least one.
    async fn run_several(
        &self,
        (tenant, functions): (&Tenant, Functions),
        calls: Vec<Call>,
        fuel_each: Option<u64>,
        usage: &Usage,
    ) -> Result<Vec<Decoded>, Busy> {
        let outcomes = self.pool.call_several(tenant, functions, calls, fuel_each).await?;
        usage.add_fuel(outcomes.iter().map(|outcome| outcome.fuel).sum());
        Ok(outcomes.into_iter().map(Decoded::from).collect())
    }

    /// Encodes the fields of a downlink; [`Error::Function`] if the encoder fails.
    pub(crate) async fn encode(
        &self,
        application: &Application,
        fields: &str,
        payload: &Payload,
        run: Run<'_>,
    ) -> Result<Encoded, Error> {
        check_object(fields)?;
        match application.summary().conversion() {
            Conversion::None => Ok(Encoded::default()),
            Conversion::CayenneLpp => encode_cayenne(fields),
            Conversion::Custom(_) if application.sources().encoder.is_empty() => {
                Err(Error::invalid("Downlink Payload", "fields supplied, but no Encoder function set"))
            }
            Conversion::Custom(_) => self.run_encoder(application, fields, payload, run).await,
        }
    }

    async fn run_encoder(
        &self,
        application: &Application,
        fields: &str,
        payload: &Payload,
        run: Run<'_>,
    ) -> Result<Encoded, Error> {
        let app_id = &application.summary().app_id;
        let tenant = self.tenant(app_id, run.priority);
        let functions = self.load(&tenant, (application, self.limits(app_id)), run.usage).await?;
        let functions = functions.map_err(|failure| cannot_load(failure, application))?;
        let call = call(EntryPoint::EncodeDownlink, payload, fields.as_bytes());
        let report = self.pool.call(&tenant, functions, call).await?;
        run.usage.add_fuel(report.fuel);
        let cost = Cost { fuel: report.fuel, elapsed: report.elapsed };
        let failure = match report.result {
            Ok(Value::Bytes { bytes, port }) => {
                let version = application.summary().version;
                return Ok(Encoded {
                    payload: bytes,
                    port,
                    warnings: report.warnings,
                    logs: report.logs,
                    cost,
                    version,
                });
            }
            Ok(_) => Failure::malformed_reply(Slot::Encoder),
            Err(failure) => failure,
        };
        let error = FunctionError::new(failure, application.sources(), report.logs, cost);
        Err(error.of_version(application.summary().version).into())
    }

    /// Each application is a tenant of the sandbox.
    fn tenant(&self, app_id: &AppId, priority: Priority) -> Tenant {
        let owner = self.owners.as_ref().map_or_else(|| Owner::from(app_id), |owners| owners.last(app_id));
        Tenant { owner: owner.to_string().into(), id: app_id.as_str().into(), priority }
    }

    async fn load(
        &self,
        tenant: &Tenant,
        set: (&Application, &HashedLimits),
        usage: &Usage,
    ) -> Result<Result<Functions, Failure>, Error> {
        let cache = match tenant.priority {
            Priority::Live => &self.functions,
            Priority::DryRun => &self.dry_run_functions,
        };
        Ok(cache.get_or_load(tenant, set, &self.pool, usage).await?)
    }

    async fn run(
        &self,
        tenant: &Tenant,
        functions: Result<Functions, Failure>,
        payload: &Payload,
        usage: &Usage,
    ) -> Result<Decoded, Error> {
        match functions {
            Ok(functions) => {
                let call = call(EntryPoint::Uplink, payload, bytes(payload));
                let report = self.pool.call(tenant, functions, call).await?;
                usage.add_fuel(report.fuel);
                Ok(report.into())
            }
            Err(failure) => Ok(DecodeError::Function(failure).into()),
        }
    }
}

fn bytes(payload: &Payload) -> &[u8] {
    payload.bytes.as_deref().unwrap_or_default()
}

fn cannot_load(failure: Failure, application: &Application) -> Error {
    let error = FunctionError::new(failure, application.sources(), Vec::new(), Cost::default());
    error.of_version(application.summary().version).into()
}

fn call(entry_point: EntryPoint, payload: &Payload, bytes: &[u8]) -> Call {
    Call {
        entry_point,
        port: payload.port,
        time_ms: payload.received.as_millis(),
        seed: payload.seed,
        payload: bytes.to_vec(),
        extra: payload.extra.clone(),
        single_function: None,
    }
}

/// Checks that `fields` is the text of an object, without parsing its strings: the encoder may get lone surrogates.
fn check_object(fields: &str) -> Result<(), Error> {
    let json: &RawValue = serde_json::from_str(fields).map_err(|error| Error::invalid("Fields", error))?;
    match json.get().starts_with('{') {
        true => Ok(()),
        false => Err(Error::invalid("Fields", "they are not a JSON object")),
    }
}

fn encode_cayenne(fields: &str) -> Result<Encoded, Error> {
    let object = serde_json::from_str(fields).map_err(|error| Error::invalid("Fields", error))?;
    Ok(Encoded { payload: cayenne::encode(&object), ..Encoded::default() })
}

fn decode_cayenne(bytes: &[u8]) -> Result<Decoded, Error> {
    match cayenne::decode(bytes) {
        Ok(values) if values.is_empty() => Ok(Decoded { validity: Validity::Valid, ..Decoded::default() }),
        Ok(values) => {
            let fields = Some(serde_json::value::to_raw_value(&values)?);
            Ok(Decoded { fields, validity: Validity::Valid, ..Decoded::default() })
        }
        Err(error) => Ok(DecodeError::CayenneLpp(error).into()),
    }
}
