//! Listing fifty thousand devices: all of them in pages, and ten of them.

use std::time::Instant;

use api::handler::ApplicationIdentifier;

use crate::{
    dataset,
    figures::{Figures, median},
    services::Services,
};

/// Number of devices of the application.
pub(crate) const LISTED_DEVICES: usize = 50_000;
const PAGE_SIZES: [usize; 2] = [100, 1000];
/// Number of devices that a caller asks for to show the first few.
const FEW: usize = 10;
/// Number of such calls at each offset.
const FEW_CALLS: usize = 200;

pub(crate) async fn measure(figures: &mut Figures, services: &Services, store: &str) {
    for limit in PAGE_SIZES {
        let mut pages = Vec::new();
        for offset in (0..LISTED_DEVICES).step_by(limit) {
            pages.push(page_ms(services, offset, limit).await);
        }
        let (whole, ends) = (pages.iter().sum::<f64>(), pages[pages.len() - 1] / pages[0]);
        let measured = format!("{whole:.0} ms, {:.1} ms a page, last ÷ first {ends:.1}", median(&mut pages));
        figures.add(&format!("{LISTED_DEVICES} devices in pages of {limit} over gRPC, {store}"), measured, "");
    }
}

/// Ten of all devices, from the beginning, the middle and the end.
pub(crate) async fn measure_few(figures: &mut Figures, services: &Services, store: &str) {
    for offset in [0, LISTED_DEVICES / 2, LISTED_DEVICES - FEW] {
        let mut pages = Vec::new();
        for _ in 0..FEW_CALLS {
            pages.push(page_ms(services, offset, FEW).await);
        }
        let measured = format!("{:.2} ms", median(&mut pages));
        figures.add(&format!("{FEW} of {LISTED_DEVICES} devices from {offset} over gRPC, {store}"), measured, "");
    }
}

async fn page_ms(services: &Services, offset: usize, limit: usize) -> f64 {
    let mut request = services.sign(ApplicationIdentifier { app_id: dataset::app_id(0).to_string() });
    request.metadata_mut().insert("offset", offset.into());
    request.metadata_mut().insert("limit", limit.into());
    let began = Instant::now();
    let response = services.stub.clone().get_devices_for_application(request).await.unwrap();
    let taken = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(response.metadata().get("total").unwrap(), &LISTED_DEVICES.to_string());
    assert_eq!(response.into_inner().devices.len(), limit);
    taken
}
