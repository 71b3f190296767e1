//! The routes of the codec service.

mod codecs;
mod emqx;
mod error;
mod host;
mod key;
mod run;

use std::sync::Arc;

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with},
};
use axum::{
    Router,
    extract::{FromRequestParts, Path},
    http::request::Parts,
    middleware::from_fn_with_state,
};
use server::{
    error_response::ErrorFormat,
    openapi::{self, About, OperationExt, doc},
};
use types::{Clock, Kind, Random};

use self::error::RestError;
pub use self::host::names_this_machine;
pub(crate) use self::key::Key;
use crate::{directory::CodecDirectory, name::CodecName};

/// State that the routes share.
pub(crate) struct Service {
    pub(crate) directory: Arc<CodecDirectory>,
    /// `None` if everybody may run codecs, and nobody may change them.
    pub(crate) key: Option<Key>,
    /// The hosts that it answers for besides this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// Maximum number of messages in one request.
    pub(crate) batch_max: usize,
}

/// The name of the codec in the path.
struct NamePath(CodecName);

type Shared = axum::extract::State<Arc<Service>>;

/// The routes, and `/openapi.json`, which describes them.
pub(crate) fn router(service: Arc<Service>, is_local: bool) -> Router {
    let about = About {
        title: "Airlock codecs",
        description: "Runs codecs on messages, each in a fresh sandbox with limits on time and memory. With a key file, \
                      every request needs the key; without one, codecs cannot be changed here.",
        tags: &[],
        credentials: vec![("key", openapi::header("Authorization", "`Bearer`, followed by the key."))],
        errors: ErrorFormat::Account,
        failures: &[Kind::Unauthenticated, Kind::Unavailable, Kind::Exhausted],
    };
    let (router, document) = openapi::generate(about, routes);
    let router = match (&service.key, is_local) {
        (Some(_), _) => router.layer(from_fn_with_state(service.clone(), key::check)),
        (None, true) => router.layer(from_fn_with_state(service.clone(), host::check)),
        // Whoever reaches it may use it.
        (None, false) => router,
    };
    router.route("/openapi.json", openapi::serve(&document)).with_state(service)
}

fn routes() -> ApiRouter<Arc<Service>> {
    let codec = post_with(run::run, |op| {
        op.doc(
            "RunCodec",
            "Run a codec on a message, or on an array of them. A payload is decoded, fields are encoded. In an array, \
             each message has its own result or error.",
        )
        .fails(&[Kind::NotFound])
        .fails_with::<error::FailureBody>(server::status::http(Kind::Invalid))
    })
    .get_with(codecs::get, |op| op.doc("GetCodec", "Get the source of a codec").fails(&[Kind::NotFound]))
    .put_with(codecs::put, |op| {
        op.doc("PutCodec", "Save a codec. Its source is the body; one that cannot be loaded is refused.")
            .fails(&[Kind::Denied])
            .fails_with::<error::FailureBody>(server::status::http(Kind::Invalid))
    })
    .delete_with(codecs::delete, |op| op.doc("DeleteCodec", "Delete a codec").fails(&[Kind::NotFound, Kind::Denied]));
    let emqx = post_with(emqx::run, |op| {
        op.doc(
            "RunCodecForEmqx",
            "Run a codec as an external HTTP schema of EMQX. The response is base64: of the fields as JSON, or of the \
             encoded payload.",
        )
        .fails(&[Kind::NotFound])
    });
    ApiRouter::new()
        .api_route("/codecs", get_with(codecs::list, doc("ListCodecs", "List the codecs")))
        .api_route("/codecs/{name}", codec)
        .api_route("/codecs/{name}/emqx", emqx)
}

impl<S: Send + Sync> FromRequestParts<S> for NamePath {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RestError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let name = path.map_err(|error| crate::Error::invalid("name of a codec", error))?;
        Ok(Self(name.0.parse()?))
    }
}

impl aide::OperationInput for NamePath {
    fn operation_input(context: &mut aide::generate::GenContext, operation: &mut aide::openapi::Operation) {
        openapi::path_parameter::<CodecName>(context, operation);
    }
}
