//! Approximate locations: close enough to be useful, but no help in finding the exact one.

use serde_json::{Value, json};

use crate::service::Service;

/// The documented maximum error of an approximate location.
const RADIUS_METRES: f64 = 1_000.0;
const DEGREE_METRES: f64 = 111_320.0;

/// Locations in all four hemispheres, at the equator, near the poles and at the antimeridian.
const PLACES: [(f64, f64); 7] =
    [(52.37403, 4.88968), (-33.86, 151.21), (0.0, 0.001), (64.1, -21.9), (1.3, 103.8), (-17.7, 179.9999), (89.0, 12.0)];

struct Gateway<'a> {
    service: &'a Service,
    path: String,
    authorization: String,
}

impl Gateway<'_> {
    async fn put(&self, latitude: f64, longitude: f64) {
        let place = json!({"antenna_location": {"latitude": latitude, "longitude": longitude, "altitude": 5}});
        let response = self.service.call("PATCH", &self.path, &self.authorization, place).await;
        assert_eq!(response.status, 204);
    }

    async fn rough(&self) -> (f64, f64) {
        let seen = self.service.get(&self.path, "").await.json()["antenna_location"].clone();
        assert_eq!(seen.get("altitude"), None);
        let degrees = |member: &str| seen[member].as_f64().unwrap();
        (degrees("latitude"), degrees("longitude"))
    }
}

async fn gateway<'a>(service: &'a Service, general: &str, id: &str) -> Gateway<'a> {
    let authorization = service.gateway(general, id).await;
    Gateway { service, path: format!("/gateways/{id}"), authorization }
}

fn metres(one: (f64, f64), other: (f64, f64)) -> f64 {
    let around = (one.1 - other.1).abs();
    let east = around.min(360.0 - around) * one.0.to_radians().cos();
    (one.0 - other.0).hypot(east) * DEGREE_METRES
}

// Conformance: `antenna_location`
#[tokio::test]
async fn approximate_locations_are_near_and_differ_between_gateways() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let (one, other) = (gateway(&service, &general, "gw-1").await, gateway(&service, &general, "gw-2").await);
    for place in PLACES {
        one.put(place.0, place.1).await;
        other.put(place.0, place.1).await;
        let (first, second) = (one.rough().await, other.rough().await);
        for rough in [first, second] {
            assert!(metres(place, rough) <= RADIUS_METRES + 2.0, "{place:?} became {rough:?}");
            assert!(rough.0.abs() <= 90.0 && rough.1.abs() <= 180.0, "{rough:?}");
        }
        assert_ne!(first, second, "{place:?}: otherwise one public gateway would give the grid away");
    }
}

#[tokio::test]
async fn repeated_requests_and_small_moves_reveal_nothing() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let gateway = gateway(&service, &general, "gw-1").await;
    gateway.put(52.37403, 4.88968).await;
    // Starts at the center of the square, from which half a square in any direction is inside.
    let middle = gateway.rough().await;
    for number in 0..20 {
        let turn = f64::from(number);
        gateway.put(middle.0 + 0.005 * turn.sin(), middle.1 + 0.008 * turn.cos()).await;
        assert_eq!(gateway.rough().await, middle, "round {number}");
    }
    assert_eq!(service.reopen().await.get("/gateways/gw-1", "").await.json()["antenna_location"]["latitude"], middle.0);
    gateway.put(middle.0 + 0.05, middle.1).await;
    assert_ne!(gateway.rough().await, middle);
}

// Conformance: `antenna_location`
#[tokio::test]
async fn an_incomplete_location_is_not_shown() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let gateway = gateway(&service, &general, "gw-1").await;
    let seen = async || service.get("/gateways/gw-1", "").await.json().get("antenna_location").cloned();
    assert_eq!(seen().await, None);
    for half in [json!({"altitude": 5}), json!({"latitude": 52.0})] {
        let body = json!({ "antenna_location": half });
        assert_eq!(service.call("PATCH", &gateway.path, &gateway.authorization, body).await.status, 204);
        assert_eq!(seen().await, None::<Value>);
    }
}
