//! Gateways.

use api::rest::account::{Gateway, GatewayUpdate, NewGateway, TokenResponse};
use reqwest::Method;
use types::{Credential, GatewayId};

use super::AccountClient;
use crate::Result;

impl AccountClient {
    /// Lists the caller's gateways.
    pub async fn gateways(&self, credential: &Credential) -> Result<Vec<Gateway>> {
        self.http.json(self.authorized(Method::GET, &["gateways"], credential)).await
    }

    /// Returns a gateway, as far as the caller may see it.
    pub async fn gateway(&self, credential: &Credential, gateway_id: &GatewayId) -> Result<Gateway> {
        self.http.json(self.authorized(Method::GET, &["gateways", gateway_id.as_str()], credential)).await
    }

    /// Creates a gateway.
    pub async fn create_gateway(&self, credential: &Credential, gateway: &NewGateway) -> Result<Gateway> {
        self.http.json(self.authorized(Method::POST, &["gateways"], credential).json(gateway)).await
    }

    /// Changes the given settings of a gateway.
    pub async fn update_gateway(
        &self,
        credential: &Credential,
        gateway_id: &GatewayId,
        update: &GatewayUpdate,
    ) -> Result<()> {
        let request = self.authorized(Method::PATCH, &["gateways", gateway_id.as_str()], credential);
        self.http.done(request.json(update)).await
    }

    /// Deletes a gateway; its id is never reused.
    pub async fn delete_gateway(&self, credential: &Credential, gateway_id: &GatewayId) -> Result<()> {
        self.http.done(self.authorized(Method::DELETE, &["gateways", gateway_id.as_str()], credential)).await
    }

    /// Returns a token that authenticates the gateway to network components.
    pub async fn gateway_token(&self, credential: &Credential, gateway_id: &GatewayId) -> Result<TokenResponse> {
        self.http.json(self.authorized(Method::GET, &["gateways", gateway_id.as_str(), "token"], credential)).await
    }
}
