//! Uplinks as devices send them: each every ten minutes, with readings that change little.

use std::{
    iter,
    sync::atomic::{AtomicI64, Ordering},
};

use airlock_history::{Kind, NewRecord, Outcome};
use types::{AppId, Clock, DevId, Random, Timestamp};

use crate::GROUP;

/// A clock that shows when the last uplink came.
pub(crate) struct BenchClock(AtomicI64);

pub(crate) struct SeededRandom;

/// An uplink with the result of its functions.
pub(crate) struct Uplink {
    app_id: AppId,
    dev_id: DevId,
    counter: u32,
    payload: [u8; 12],
    metadata: String,
    result: String,
    fuel: u64,
    microseconds: u32,
    pub(crate) received: Timestamp,
}

/// The uplinks of a measurement.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) has_gateway: bool,
    pub(crate) devices: u32,
    /// Number of applications whose uplinks come in turn.
    pub(crate) applications: u32,
    /// True if each has devices of its own.
    pub(crate) has_own_devices: bool,
    /// Milliseconds between two uplinks of all devices.
    pub(crate) apart_ms: i64,
    /// Number of groups between two looks at all files.
    pub(crate) maintained_after: u32,
}

pub(crate) struct Input {
    case: &'static Case,
    applications: Vec<AppId>,
    state: u64,
    devices: Vec<DevId>,
}

impl Default for BenchClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_790_000_000_000))
    }
}

impl BenchClock {
    pub(crate) fn set(&self, time: Timestamp) {
        self.0.store(time.as_millis(), Ordering::Relaxed);
    }
}

impl Clock for BenchClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        bytes.iter_mut().zip(now.to_le_bytes()).for_each(|(byte, random)| *byte = random);
    }
}

pub(crate) fn application() -> AppId {
    "weather-stations".parse().unwrap()
}

pub(crate) fn device(number: u32) -> DevId {
    format!("station-{number:05}").parse().unwrap()
}

impl Input {
    pub(crate) fn new(case: &'static Case) -> Self {
        let others = (1..case.applications).map(|number| format!("weather-stations-{number}").parse().unwrap());
        let applications = iter::once(application()).chain(others).collect();
        Self { case, applications, state: 88_172_645_463_325_252, devices: (0..case.devices).map(device).collect() }
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    pub(crate) fn records(&mut self, group: u32, _clock: &BenchClock) -> Vec<Uplink> {
        (0..GROUP).map(|row| self.uplink(group * GROUP + row)).collect()
    }

    /// The place of an uplink among those of all devices, which is later than its number by so many devices.
    fn place(&self, number: u32, late: u32) -> u32 {
        // A device is that of the application in whose turn it comes.
        if self.case.has_own_devices { number + late * self.case.applications } else { number + late }
    }

    fn uplink(&mut self, number: u32) -> Uplink {
        let (first, second) = (self.random(), self.random());
        let payload = [first.to_le_bytes(), second.to_le_bytes()].concat();
        // Devices do not keep their order: each is late by another time.
        let device = self.place(number, (first % 64) as u32) % self.case.devices;
        let millis = 1_790_000_000_000 + i64::from(number) * self.case.apart_ms + (second % 50) as i64;
        let temperature = 15.0 + (first % 30_000) as f64 / 1000.0;
        let humidity = 40.0 + (second % 400) as f64 / 10.0;
        let battery = 3.6 - f64::from(number / self.case.devices % 400) / 1000.0;
        let result = format!(
            r#"{{"battery":{battery:.3},"temperature":{temperature},"humidity":{humidity},"status":"ok","motion":{}}}"#,
            first & 64 == 0
        );
        let received = Timestamp::from_millis(millis);
        let metadata = if self.case.has_gateway { gateway(received, first) } else { String::new() };
        Uplink {
            app_id: self.applications[(number % self.case.applications) as usize].clone(),
            dev_id: self.devices[device as usize].clone(),
            counter: number / self.case.devices,
            payload: payload[..12].try_into().unwrap(),
            metadata,
            result,
            fuel: 25_000 + second % 200,
            // With a run now and then that others delayed.
            microseconds: 30 + (second % 20) as u32 * if second % 50 == 0 { 20 } else { 1 },
            received,
        }
    }
}

/// With numbers as the handler writes them.
fn gateway(time: Timestamp, random: u64) -> String {
    format!(
        r#"{{"time":"{time}","frequency":{},"modulation":"LORA","data_rate":"SF{}BW125","coding_rate":"4/5","gateways":[{{"gtw_id":"eui-0102030405060{:03x}","timestamp":{},"time":"{time}","channel":{},"rssi":-{}.0,"snr":{:?},"rf_chain":0}}]}}"#,
        (8681 + random % 8 * 2) as f32 / 10.0,
        7 + random % 6,
        random % 16,
        random as u32,
        random % 8,
        60 + random % 60,
        (random % 40) as f32 / 4.0,
    )
}

impl Uplink {
    pub(crate) fn record(&self) -> NewRecord<'_> {
        NewRecord {
            port: 2,
            counter: self.counter,
            payload: &self.payload,
            metadata: &self.metadata,
            functions: Some([7; 32]),
            version: Some(3),
            limits: Some([99; 8]),
            outcome: Outcome::Decoded,
            result: &self.result,
            fuel: self.fuel,
            microseconds: Some(self.microseconds),
            ..NewRecord::new(&self.app_id, &self.dev_id, &Kind::Uplink, self.received)
        }
    }
}
