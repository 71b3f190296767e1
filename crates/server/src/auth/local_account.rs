//! An account service in the same process, which is asked about credentials without HTTP.

use async_trait::async_trait;
use types::{AccessKey, AppId, ApplicationRight, Claims, GatewayId, GatewayRight, Secret};

/// Answers what the account service would over HTTP. What it cannot answer is not asked again at once. Its errors are
/// [`Kind::Unauthenticated`](types::Kind::Unauthenticated) for a credential that does not count any more,
/// [`Kind::Denied`](types::Kind::Denied) or [`Kind::NotFound`](types::Kind::NotFound) for one without rights.
#[async_trait]
pub trait LocalAccount: Send + Sync {
    /// The rights to an application that a token still has.
    async fn application_rights(&self, token: &Secret, app_id: &AppId) -> client::Result<Vec<ApplicationRight>>;

    /// The rights to a gateway that a token still has.
    async fn gateway_rights(&self, token: &Secret, gateway_id: &GatewayId) -> client::Result<Vec<GatewayRight>>;

    /// The claims of the token that an access key could be exchanged for.
    async fn key_claims(&self, app_id: &AppId, key: &AccessKey) -> client::Result<Claims>;
}
