//! Requests that a well-behaved client never sends.

use api::discovery::{GetByAppEuiRequest, GetByAppIdRequest, GetByGatewayIdRequest};
use tonic::{Code, Status};

use crate::harness::TestDiscovery;

async fn by_app_eui(discovery: &TestDiscovery, app_eui: &[u8]) -> Status {
    discovery.stub().await.get_by_app_eui(GetByAppEuiRequest { app_eui: app_eui.to_vec() }).await.unwrap_err()
}

#[tokio::test]
async fn refuses_an_eui_of_the_wrong_length() {
    let discovery = TestDiscovery::start().await;
    for length in [1, 7, 9, 100] {
        let status = by_app_eui(&discovery, &vec![1; length]).await;
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "AppEUI not valid: must be 8 bytes"));
    }
}

#[tokio::test]
async fn an_empty_eui_is_invalid_and_an_unknown_one_not_found() {
    let discovery = TestDiscovery::start().await;
    for empty in [&[][..], &[0; 8]] {
        let status = by_app_eui(&discovery, empty).await;
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "AppEUI not valid: can not be empty"));
    }
    let status = by_app_eui(&discovery, &[1; 8]).await;
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "discovery:app_eui:0101010101010101 not found");
}

// Conformance: GetByAppID, GetByGatewayID, GetByAppEUI
#[tokio::test]
async fn validates_ids_before_any_lookup() {
    let discovery = TestDiscovery::start().await;
    let mut stub = discovery.stub().await;
    for id in ["", "NO", "a*", "a:b", "a/b", "{a}"] {
        let status = stub.get_by_app_id(GetByAppIdRequest { app_id: id.into() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{id}: {status}");
        let status = stub.get_by_gateway_id(GetByGatewayIdRequest { gateway_id: id.into() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{id}: {status}");
    }
    let status = stub.get_by_gateway_id(GetByGatewayIdRequest { gateway_id: "gw-1".into() }).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "discovery:gateway_id:gw-1 not found"));
}
