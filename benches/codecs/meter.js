/**
 * Payload decoder of a three-phase energy meter with pulse, temperature, analog and digital inputs.
 *
 * The port tells what a message is:
 *
 *   1  measurements: a list of register number (2 bytes, big endian) and value
 *   2  history: a base record and the differences of the records that follow
 *   3  alarms: a list of alarm number, state and time
 *   4  event log: numbered entries with a time and up to four bytes of detail
 *   5  settings: a list of setting number and value, as asked for by a downlink
 *   6  device information: versions, serial number, calibration, uptime
 *   7  harmonics of one quantity: amplitudes in percent of the fundamental
 *   8  tariff counters and the calendar that is in force
 *
 * Every message ends with a checksum over all bytes before it (CRC-8, polynomial 0x31).
 */

var REGISTERS = {
  0x0100: { name: "voltage_l1", unit: "V", type: "u16", scale: 0.1 },
  0x0101: { name: "voltage_l2", unit: "V", type: "u16", scale: 0.1 },
  0x0102: { name: "voltage_l3", unit: "V", type: "u16", scale: 0.1 },
  0x0103: { name: "current_l1", unit: "A", type: "u32", scale: 0.001 },
  0x0104: { name: "current_l2", unit: "A", type: "u32", scale: 0.001 },
  0x0105: { name: "current_l3", unit: "A", type: "u32", scale: 0.001 },
  0x0106: { name: "active_power_l1", unit: "W", type: "i32", scale: 0.1 },
  0x0107: { name: "active_power_l2", unit: "W", type: "i32", scale: 0.1 },
  0x0108: { name: "active_power_l3", unit: "W", type: "i32", scale: 0.1 },
  0x0109: { name: "reactive_power_l1", unit: "var", type: "i32", scale: 0.1 },
  0x010a: { name: "reactive_power_l2", unit: "var", type: "i32", scale: 0.1 },
  0x010b: { name: "reactive_power_l3", unit: "var", type: "i32", scale: 0.1 },
  0x010c: { name: "apparent_power_l1", unit: "VA", type: "u32", scale: 0.1 },
  0x010d: { name: "apparent_power_l2", unit: "VA", type: "u32", scale: 0.1 },
  0x010e: { name: "apparent_power_l3", unit: "VA", type: "u32", scale: 0.1 },
  0x010f: { name: "power_factor_l1", unit: "", type: "i16", scale: 0.001 },
  0x0110: { name: "power_factor_l2", unit: "", type: "i16", scale: 0.001 },
  0x0111: { name: "power_factor_l3", unit: "", type: "i16", scale: 0.001 },
  0x0112: { name: "phase_angle_l1", unit: "deg", type: "i16", scale: 0.1 },
  0x0113: { name: "phase_angle_l2", unit: "deg", type: "i16", scale: 0.1 },
  0x0114: { name: "phase_angle_l3", unit: "deg", type: "i16", scale: 0.1 },
  0x0115: { name: "frequency_l1", unit: "Hz", type: "u16", scale: 0.01 },
  0x0116: { name: "frequency_l2", unit: "Hz", type: "u16", scale: 0.01 },
  0x0117: { name: "frequency_l3", unit: "Hz", type: "u16", scale: 0.01 },
  0x0118: { name: "voltage_thd_l1", unit: "%", type: "u16", scale: 0.01 },
  0x0119: { name: "voltage_thd_l2", unit: "%", type: "u16", scale: 0.01 },
  0x011a: { name: "voltage_thd_l3", unit: "%", type: "u16", scale: 0.01 },
  0x011b: { name: "current_thd_l1", unit: "%", type: "u16", scale: 0.01 },
  0x011c: { name: "current_thd_l2", unit: "%", type: "u16", scale: 0.01 },
  0x011d: { name: "current_thd_l3", unit: "%", type: "u16", scale: 0.01 },
  0x011e: { name: "voltage_l1_l2", unit: "V", type: "u16", scale: 0.1 },
  0x011f: { name: "voltage_l2_l3", unit: "V", type: "u16", scale: 0.1 },
  0x0120: { name: "voltage_l3_l1", unit: "V", type: "u16", scale: 0.1 },
  0x0121: { name: "current_neutral", unit: "A", type: "u32", scale: 0.001 },
  0x0122: { name: "current_leakage", unit: "A", type: "u16", scale: 0.0001 },
  0x0123: { name: "active_power_total", unit: "W", type: "i32", scale: 0.1 },
  0x0124: { name: "reactive_power_total", unit: "var", type: "i32", scale: 0.1 },
  0x0125: { name: "apparent_power_total", unit: "VA", type: "u32", scale: 0.1 },
  0x0126: { name: "power_factor_total", unit: "", type: "i16", scale: 0.001 },
  0x0127: { name: "voltage_unbalance", unit: "%", type: "u16", scale: 0.01 },
  0x0128: { name: "current_unbalance", unit: "%", type: "u16", scale: 0.01 },
  0x0200: { name: "active_energy_import_total", unit: "kWh", type: "u32", scale: 0.01 },
  0x0201: { name: "active_energy_import_l1", unit: "kWh", type: "u32", scale: 0.01 },
  0x0202: { name: "active_energy_import_l2", unit: "kWh", type: "u32", scale: 0.01 },
  0x0203: { name: "active_energy_import_l3", unit: "kWh", type: "u32", scale: 0.01 },
  0x0204: { name: "active_energy_import_tariff_1", unit: "kWh", type: "u32", scale: 0.01 },
  0x0205: { name: "active_energy_import_tariff_2", unit: "kWh", type: "u32", scale: 0.01 },
  0x0206: { name: "active_energy_import_tariff_3", unit: "kWh", type: "u32", scale: 0.01 },
  0x0207: { name: "active_energy_import_tariff_4", unit: "kWh", type: "u32", scale: 0.01 },
  0x0208: { name: "reactive_energy_import_total", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0209: { name: "reactive_energy_import_l1", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020a: { name: "reactive_energy_import_l2", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020b: { name: "reactive_energy_import_l3", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020c: { name: "reactive_energy_import_tariff_1", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020d: { name: "reactive_energy_import_tariff_2", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020e: { name: "reactive_energy_import_tariff_3", unit: "kvarh", type: "u32", scale: 0.01 },
  0x020f: { name: "reactive_energy_import_tariff_4", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0210: { name: "apparent_energy_import_total", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0211: { name: "apparent_energy_import_l1", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0212: { name: "apparent_energy_import_l2", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0213: { name: "apparent_energy_import_l3", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0214: { name: "apparent_energy_import_tariff_1", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0215: { name: "apparent_energy_import_tariff_2", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0216: { name: "apparent_energy_import_tariff_3", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0217: { name: "apparent_energy_import_tariff_4", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0218: { name: "active_energy_export_total", unit: "kWh", type: "u32", scale: 0.01 },
  0x0219: { name: "active_energy_export_l1", unit: "kWh", type: "u32", scale: 0.01 },
  0x021a: { name: "active_energy_export_l2", unit: "kWh", type: "u32", scale: 0.01 },
  0x021b: { name: "active_energy_export_l3", unit: "kWh", type: "u32", scale: 0.01 },
  0x021c: { name: "active_energy_export_tariff_1", unit: "kWh", type: "u32", scale: 0.01 },
  0x021d: { name: "active_energy_export_tariff_2", unit: "kWh", type: "u32", scale: 0.01 },
  0x021e: { name: "active_energy_export_tariff_3", unit: "kWh", type: "u32", scale: 0.01 },
  0x021f: { name: "active_energy_export_tariff_4", unit: "kWh", type: "u32", scale: 0.01 },
  0x0220: { name: "reactive_energy_export_total", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0221: { name: "reactive_energy_export_l1", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0222: { name: "reactive_energy_export_l2", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0223: { name: "reactive_energy_export_l3", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0224: { name: "reactive_energy_export_tariff_1", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0225: { name: "reactive_energy_export_tariff_2", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0226: { name: "reactive_energy_export_tariff_3", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0227: { name: "reactive_energy_export_tariff_4", unit: "kvarh", type: "u32", scale: 0.01 },
  0x0228: { name: "apparent_energy_export_total", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0229: { name: "apparent_energy_export_l1", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022a: { name: "apparent_energy_export_l2", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022b: { name: "apparent_energy_export_l3", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022c: { name: "apparent_energy_export_tariff_1", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022d: { name: "apparent_energy_export_tariff_2", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022e: { name: "apparent_energy_export_tariff_3", unit: "kVAh", type: "u32", scale: 0.01 },
  0x022f: { name: "apparent_energy_export_tariff_4", unit: "kVAh", type: "u32", scale: 0.01 },
  0x0300: { name: "voltage_l1_min", unit: "V", type: "u16", scale: 0.1 },
  0x0301: { name: "voltage_l1_max", unit: "V", type: "u16", scale: 0.1 },
  0x0302: { name: "voltage_l1_avg", unit: "V", type: "u16", scale: 0.1 },
  0x0303: { name: "voltage_l2_min", unit: "V", type: "u16", scale: 0.1 },
  0x0304: { name: "voltage_l2_max", unit: "V", type: "u16", scale: 0.1 },
  0x0305: { name: "voltage_l2_avg", unit: "V", type: "u16", scale: 0.1 },
  0x0306: { name: "voltage_l3_min", unit: "V", type: "u16", scale: 0.1 },
  0x0307: { name: "voltage_l3_max", unit: "V", type: "u16", scale: 0.1 },
  0x0308: { name: "voltage_l3_avg", unit: "V", type: "u16", scale: 0.1 },
  0x0309: { name: "current_l1_min", unit: "A", type: "u32", scale: 0.001 },
  0x030a: { name: "current_l1_max", unit: "A", type: "u32", scale: 0.001 },
  0x030b: { name: "current_l1_avg", unit: "A", type: "u32", scale: 0.001 },
  0x030c: { name: "current_l2_min", unit: "A", type: "u32", scale: 0.001 },
  0x030d: { name: "current_l2_max", unit: "A", type: "u32", scale: 0.001 },
  0x030e: { name: "current_l2_avg", unit: "A", type: "u32", scale: 0.001 },
  0x030f: { name: "current_l3_min", unit: "A", type: "u32", scale: 0.001 },
  0x0310: { name: "current_l3_max", unit: "A", type: "u32", scale: 0.001 },
  0x0311: { name: "current_l3_avg", unit: "A", type: "u32", scale: 0.001 },
  0x0312: { name: "active_power_l1_min", unit: "W", type: "i32", scale: 0.1 },
  0x0313: { name: "active_power_l1_max", unit: "W", type: "i32", scale: 0.1 },
  0x0314: { name: "active_power_l1_avg", unit: "W", type: "i32", scale: 0.1 },
  0x0315: { name: "active_power_l2_min", unit: "W", type: "i32", scale: 0.1 },
  0x0316: { name: "active_power_l2_max", unit: "W", type: "i32", scale: 0.1 },
  0x0317: { name: "active_power_l2_avg", unit: "W", type: "i32", scale: 0.1 },
  0x0318: { name: "active_power_l3_min", unit: "W", type: "i32", scale: 0.1 },
  0x0319: { name: "active_power_l3_max", unit: "W", type: "i32", scale: 0.1 },
  0x031a: { name: "active_power_l3_avg", unit: "W", type: "i32", scale: 0.1 },
  0x0400: { name: "demand_active_present", unit: "W", type: "i32", scale: 0.1 },
  0x0401: { name: "demand_active_last", unit: "W", type: "i32", scale: 0.1 },
  0x0402: { name: "demand_active_predicted", unit: "W", type: "i32", scale: 0.1 },
  0x0403: { name: "demand_active_peak", unit: "W", type: "i32", scale: 0.1 },
  0x0404: { name: "demand_reactive_present", unit: "var", type: "i32", scale: 0.1 },
  0x0405: { name: "demand_reactive_last", unit: "var", type: "i32", scale: 0.1 },
  0x0406: { name: "demand_reactive_predicted", unit: "var", type: "i32", scale: 0.1 },
  0x0407: { name: "demand_reactive_peak", unit: "var", type: "i32", scale: 0.1 },
  0x0408: { name: "demand_apparent_present", unit: "VA", type: "u32", scale: 0.1 },
  0x0409: { name: "demand_apparent_last", unit: "VA", type: "u32", scale: 0.1 },
  0x040a: { name: "demand_apparent_predicted", unit: "VA", type: "u32", scale: 0.1 },
  0x040b: { name: "demand_apparent_peak", unit: "VA", type: "u32", scale: 0.1 },
  0x040c: { name: "demand_current_l1_present", unit: "A", type: "u32", scale: 0.001 },
  0x040d: { name: "demand_current_l1_last", unit: "A", type: "u32", scale: 0.001 },
  0x040e: { name: "demand_current_l1_predicted", unit: "A", type: "u32", scale: 0.001 },
  0x040f: { name: "demand_current_l1_peak", unit: "A", type: "u32", scale: 0.001 },
  0x0410: { name: "demand_current_l2_present", unit: "A", type: "u32", scale: 0.001 },
  0x0411: { name: "demand_current_l2_last", unit: "A", type: "u32", scale: 0.001 },
  0x0412: { name: "demand_current_l2_predicted", unit: "A", type: "u32", scale: 0.001 },
  0x0413: { name: "demand_current_l2_peak", unit: "A", type: "u32", scale: 0.001 },
  0x0414: { name: "demand_current_l3_present", unit: "A", type: "u32", scale: 0.001 },
  0x0415: { name: "demand_current_l3_last", unit: "A", type: "u32", scale: 0.001 },
  0x0416: { name: "demand_current_l3_predicted", unit: "A", type: "u32", scale: 0.001 },
  0x0417: { name: "demand_current_l3_peak", unit: "A", type: "u32", scale: 0.001 },
  0x0500: { name: "pulse_1_count", unit: "", type: "u32", scale: 1 },
  0x0501: { name: "pulse_1_rate", unit: "1/h", type: "u16", scale: 0.1 },
  0x0502: { name: "pulse_2_count", unit: "", type: "u32", scale: 1 },
  0x0503: { name: "pulse_2_rate", unit: "1/h", type: "u16", scale: 0.1 },
  0x0504: { name: "pulse_3_count", unit: "", type: "u32", scale: 1 },
  0x0505: { name: "pulse_3_rate", unit: "1/h", type: "u16", scale: 0.1 },
  0x0506: { name: "pulse_4_count", unit: "", type: "u32", scale: 1 },
  0x0507: { name: "pulse_4_rate", unit: "1/h", type: "u16", scale: 0.1 },
  0x0508: { name: "temperature_1", unit: "°C", type: "i16", scale: 0.1 },
  0x0509: { name: "temperature_2", unit: "°C", type: "i16", scale: 0.1 },
  0x050a: { name: "temperature_3", unit: "°C", type: "i16", scale: 0.1 },
  0x050b: { name: "temperature_4", unit: "°C", type: "i16", scale: 0.1 },
  0x050c: { name: "temperature_5", unit: "°C", type: "i16", scale: 0.1 },
  0x050d: { name: "temperature_6", unit: "°C", type: "i16", scale: 0.1 },
  0x050e: { name: "analog_input_1", unit: "mA", type: "u16", scale: 0.001 },
  0x050f: { name: "analog_input_2", unit: "mA", type: "u16", scale: 0.001 },
  0x0510: { name: "analog_input_3", unit: "mA", type: "u16", scale: 0.001 },
  0x0511: { name: "analog_input_4", unit: "mA", type: "u16", scale: 0.001 },
  0x0512: { name: "digital_input_1", unit: "", type: "bool", scale: 1 },
  0x0513: { name: "digital_input_2", unit: "", type: "bool", scale: 1 },
  0x0514: { name: "digital_input_3", unit: "", type: "bool", scale: 1 },
  0x0515: { name: "digital_input_4", unit: "", type: "bool", scale: 1 },
  0x0516: { name: "relay_1", unit: "", type: "bool", scale: 1 },
  0x0517: { name: "relay_2", unit: "", type: "bool", scale: 1 },
  0x0518: { name: "relay_3", unit: "", type: "bool", scale: 1 },
  0x0519: { name: "relay_4", unit: "", type: "bool", scale: 1 },
  0x051a: { name: "operating_hours", unit: "h", type: "u32", scale: 0.1 },
  0x051b: { name: "load_hours", unit: "h", type: "u32", scale: 0.1 },
  0x051c: { name: "supply_interruptions", unit: "", type: "u16", scale: 1 },
  0x051d: { name: "last_interruption", unit: "s", type: "u32", scale: 1 },
  0x051e: { name: "internal_temperature", unit: "°C", type: "i16", scale: 0.1 },
  0x051f: { name: "battery_voltage", unit: "V", type: "u16", scale: 0.001 },
  0x0520: { name: "radio_rssi", unit: "dBm", type: "i16", scale: 1 },
  0x0521: { name: "radio_snr", unit: "dB", type: "i16", scale: 0.1 },
  0x0522: { name: "clock_drift", unit: "ppm", type: "i16", scale: 0.01 }
};

var ALARMS = {
  1: { text: "voltage above the upper limit", where: "phase L1", severity: "major" },
  2: { text: "voltage below the lower limit", where: "phase L1", severity: "major" },
  3: { text: "voltage sag", where: "phase L1", severity: "minor" },
  4: { text: "voltage swell", where: "phase L1", severity: "minor" },
  5: { text: "voltage missing", where: "phase L1", severity: "critical" },
  6: { text: "current above the upper limit", where: "phase L1", severity: "major" },
  7: { text: "current reversed", where: "phase L1", severity: "minor" },
  8: { text: "power factor below the limit", where: "phase L1", severity: "minor" },
  9: { text: "harmonic distortion of the voltage above the limit", where: "phase L1", severity: "minor" },
  10: { text: "harmonic distortion of the current above the limit", where: "phase L1", severity: "minor" },
  11: { text: "voltage above the upper limit", where: "phase L2", severity: "major" },
  12: { text: "voltage below the lower limit", where: "phase L2", severity: "major" },
  13: { text: "voltage sag", where: "phase L2", severity: "minor" },
  14: { text: "voltage swell", where: "phase L2", severity: "minor" },
  15: { text: "voltage missing", where: "phase L2", severity: "critical" },
  16: { text: "current above the upper limit", where: "phase L2", severity: "major" },
  17: { text: "current reversed", where: "phase L2", severity: "minor" },
  18: { text: "power factor below the limit", where: "phase L2", severity: "minor" },
  19: { text: "harmonic distortion of the voltage above the limit", where: "phase L2", severity: "minor" },
  20: { text: "harmonic distortion of the current above the limit", where: "phase L2", severity: "minor" },
  21: { text: "voltage above the upper limit", where: "phase L3", severity: "major" },
  22: { text: "voltage below the lower limit", where: "phase L3", severity: "major" },
  23: { text: "voltage sag", where: "phase L3", severity: "minor" },
  24: { text: "voltage swell", where: "phase L3", severity: "minor" },
  25: { text: "voltage missing", where: "phase L3", severity: "critical" },
  26: { text: "current above the upper limit", where: "phase L3", severity: "major" },
  27: { text: "current reversed", where: "phase L3", severity: "minor" },
  28: { text: "power factor below the limit", where: "phase L3", severity: "minor" },
  29: { text: "harmonic distortion of the voltage above the limit", where: "phase L3", severity: "minor" },
  30: { text: "harmonic distortion of the current above the limit", where: "phase L3", severity: "minor" },
  31: { text: "phase sequence wrong", where: "supply", severity: "major" },
  32: { text: "voltages unbalanced", where: "supply", severity: "minor" },
  33: { text: "currents unbalanced", where: "load", severity: "minor" },
  34: { text: "frequency out of range", where: "supply", severity: "major" },
  35: { text: "neutral current above the limit", where: "load", severity: "major" },
  36: { text: "leakage current above the limit", where: "load", severity: "critical" },
  37: { text: "active power above the contract", where: "load", severity: "major" },
  38: { text: "active power demand predicted above the contract", where: "load", severity: "minor" },
  39: { text: "reactive power above the limit", where: "load", severity: "minor" },
  40: { text: "energy counter rolled over", where: "meter", severity: "info" },
  41: { text: "terminal cover opened", where: "case", severity: "critical" },
  42: { text: "meter cover opened", where: "case", severity: "critical" },
  43: { text: "magnetic field detected", where: "case", severity: "critical" },
  44: { text: "internal temperature above the limit", where: "meter", severity: "major" },
  45: { text: "backup battery low", where: "meter", severity: "minor" },
  46: { text: "clock not set", where: "meter", severity: "minor" },
  47: { text: "memory error", where: "meter", severity: "critical" },
  48: { text: "calibration data damaged", where: "meter", severity: "critical" },
  49: { text: "firmware verification failed", where: "meter", severity: "critical" },
  50: { text: "radio joined again", where: "radio", severity: "info" },
  51: { text: "radio duty cycle exhausted", where: "radio", severity: "minor" },
  52: { text: "pulse input 1 stuck", where: "inputs", severity: "minor" },
  53: { text: "pulse input 2 stuck", where: "inputs", severity: "minor" },
  54: { text: "pulse input 3 stuck", where: "inputs", severity: "minor" },
  55: { text: "pulse input 4 stuck", where: "inputs", severity: "minor" },
  56: { text: "temperature probe 1 open", where: "inputs", severity: "minor" },
  57: { text: "temperature probe 2 open", where: "inputs", severity: "minor" },
  58: { text: "temperature probe 3 open", where: "inputs", severity: "minor" },
  59: { text: "analog input out of range", where: "inputs", severity: "minor" },
  60: { text: "relay 1 does not follow", where: "outputs", severity: "major" },
  61: { text: "relay 2 does not follow", where: "outputs", severity: "major" }
};

var SETTINGS = {
  1: { name: "report_interval", unit: "s", type: "u32", min: 60, max: 86400, fallback: 900 },
  2: { name: "sample_interval", unit: "s", type: "u16", min: 1, max: 3600, fallback: 10 },
  3: { name: "history_interval", unit: "s", type: "u16", min: 60, max: 3600, fallback: 900 },
  4: { name: "history_depth", unit: "", type: "u16", min: 0, max: 2880, fallback: 672 },
  5: { name: "confirmed_uplinks", unit: "", type: "bool", min: 0, max: 1, fallback: 0 },
  6: { name: "adaptive_data_rate", unit: "", type: "bool", min: 0, max: 1, fallback: 1 },
  7: { name: "data_rate", unit: "", type: "u8", min: 0, max: 7, fallback: 3 },
  8: { name: "tx_power", unit: "dBm", type: "u8", min: 0, max: 16, fallback: 14 },
  9: { name: "join_retry_interval", unit: "s", type: "u32", min: 10, max: 86400, fallback: 300 },
  10: { name: "time_sync_interval", unit: "h", type: "u16", min: 0, max: 720, fallback: 24 },
  11: { name: "current_transformer_primary", unit: "A", type: "u16", min: 1, max: 10000, fallback: 100 },
  12: { name: "current_transformer_secondary", unit: "A", type: "u8", min: 1, max: 5, fallback: 5 },
  13: { name: "voltage_transformer_primary", unit: "V", type: "u32", min: 1, max: 400000, fallback: 400 },
  14: { name: "voltage_transformer_secondary", unit: "V", type: "u16", min: 1, max: 690, fallback: 400 },
  15: { name: "connection", unit: "", type: "u8", min: 0, max: 5, fallback: 3 },
  16: { name: "demand_period", unit: "min", type: "u8", min: 1, max: 60, fallback: 15 },
  17: { name: "demand_subperiods", unit: "", type: "u8", min: 1, max: 15, fallback: 1 },
  18: { name: "contract_power", unit: "W", type: "u32", min: 0, max: 100000000, fallback: 0 },
  19: { name: "voltage_upper_limit", unit: "V", type: "u16", min: 0, max: 6900, fallback: 2530 },
  20: { name: "voltage_lower_limit", unit: "V", type: "u16", min: 0, max: 6900, fallback: 2070 },
  21: { name: "sag_threshold", unit: "%", type: "u8", min: 10, max: 95, fallback: 90 },
  22: { name: "swell_threshold", unit: "%", type: "u8", min: 105, max: 200, fallback: 110 },
  23: { name: "current_upper_limit", unit: "A", type: "u32", min: 0, max: 10000000, fallback: 100000 },
  24: { name: "power_factor_limit", unit: "", type: "u16", min: 0, max: 1000, fallback: 850 },
  25: { name: "thd_voltage_limit", unit: "%", type: "u16", min: 0, max: 10000, fallback: 800 },
  26: { name: "thd_current_limit", unit: "%", type: "u16", min: 0, max: 10000, fallback: 2000 },
  27: { name: "leakage_limit", unit: "A", type: "u16", min: 0, max: 65535, fallback: 300 },
  28: { name: "temperature_limit", unit: "°C", type: "i16", min: -40, max: 120, fallback: 70 },
  29: { name: "pulse_1_weight", unit: "", type: "u32", min: 1, max: 100000, fallback: 1 },
  30: { name: "pulse_2_weight", unit: "", type: "u32", min: 1, max: 100000, fallback: 1 },
  31: { name: "pulse_3_weight", unit: "", type: "u32", min: 1, max: 100000, fallback: 1 },
  32: { name: "pulse_4_weight", unit: "", type: "u32", min: 1, max: 100000, fallback: 1 },
  33: { name: "relay_1_mode", unit: "", type: "u8", min: 0, max: 3, fallback: 0 },
  34: { name: "relay_2_mode", unit: "", type: "u8", min: 0, max: 3, fallback: 0 },
  35: { name: "display_timeout", unit: "s", type: "u16", min: 0, max: 3600, fallback: 60 },
  36: { name: "language", unit: "", type: "u8", min: 0, max: 7, fallback: 0 },
  37: { name: "tariff_scheme", unit: "", type: "u8", min: 0, max: 3, fallback: 0 },
  38: { name: "daylight_saving", unit: "", type: "bool", min: 0, max: 1, fallback: 1 },
  39: { name: "time_zone", unit: "min", type: "i16", min: -720, max: 840, fallback: 0 },
  40: { name: "password_set", unit: "", type: "bool", min: 0, max: 1, fallback: 0 }
};

var EVENTS = {
  1: { text: "supply returned", detail: "duration" },
  2: { text: "supply lost", detail: "none" },
  3: { text: "clock set", detail: "seconds" },
  4: { text: "setting changed", detail: "setting" },
  5: { text: "counters reset", detail: "none" },
  6: { text: "demand reset", detail: "none" },
  7: { text: "firmware updated", detail: "version" },
  8: { text: "firmware update refused", detail: "reason" },
  9: { text: "log in at the panel", detail: "none" },
  10: { text: "wrong password at the panel", detail: "count" },
  11: { text: "relay switched by downlink", detail: "relay" },
  12: { text: "relay switched by alarm", detail: "relay" },
  13: { text: "relay switched at the panel", detail: "relay" },
  14: { text: "tariff changed", detail: "tariff" },
  15: { text: "calendar replaced", detail: "count" },
  16: { text: "network joined", detail: "seconds" },
  17: { text: "network lost", detail: "seconds" },
  18: { text: "self test passed", detail: "none" },
  19: { text: "self test failed", detail: "reason" },
  20: { text: "calibrated", detail: "none" }
};

var REFUSALS = ["none", "wrong signature", "wrong hardware", "older than allowed", "damaged", "battery low", "memory full"];

var CONNECTIONS = ["single phase", "two phases", "three phases, three wires", "three phases, four wires", "three single phases", "delta, open"];

var DAY_KINDS = ["workday", "saturday", "sunday", "holiday"];

var SIZES = { u8: 1, i8: 1, bool: 1, u16: 2, i16: 2, u32: 4, i32: 4 };

// The values that mean "there is none", by type.
var MISSING = { u16: 0xffff, i16: -0x8000, u32: 0xffffffff, i32: -0x80000000 };

function Reader(bytes, end) {
  this.bytes = bytes;
  this.at = 0;
  this.end = end;
}

Reader.prototype.left = function () {
  return this.end - this.at;
};

Reader.prototype.u8 = function () {
  if (this.at >= this.end) {
    throw new Error("message ends after " + this.at + " bytes, in the middle of a value");
  }
  return this.bytes[this.at++];
};

Reader.prototype.i8 = function () {
  var value = this.u8();
  return value > 0x7f ? value - 0x100 : value;
};

Reader.prototype.bool = function () {
  return this.u8() !== 0;
};

Reader.prototype.u16 = function () {
  return (this.u8() << 8) | this.u8();
};

Reader.prototype.i16 = function () {
  var value = this.u16();
  return value > 0x7fff ? value - 0x10000 : value;
};

Reader.prototype.u32 = function () {
  return this.u16() * 0x10000 + this.u16();
};

Reader.prototype.i32 = function () {
  return this.u32() | 0;
};

Reader.prototype.hex = function (length) {
  var text = "";
  for (var i = 0; i < length; i++) {
    var byte = this.u8();
    text += (byte < 16 ? "0" : "") + byte.toString(16);
  }
  return text;
};

Reader.prototype.version = function () {
  return this.u8() + "." + this.u8() + "." + this.u8();
};

// Seven bits in each byte, the lowest first; the eighth says that more follow. Odd numbers are negative.
Reader.prototype.difference = function () {
  var value = 0;
  var factor = 1;
  var byte;
  do {
    byte = this.u8();
    value += (byte & 0x7f) * factor;
    factor *= 128;
  } while (byte & 0x80);
  return value % 2 ? -(value + 1) / 2 : value / 2;
};

function checksum(bytes, end) {
  var crc = 0xff;
  for (var i = 0; i < end; i++) {
    crc ^= bytes[i];
    for (var bit = 0; bit < 8; bit++) {
      crc = crc & 0x80 ? ((crc << 1) ^ 0x31) & 0xff : (crc << 1) & 0xff;
    }
  }
  return crc;
}

function digits(scale) {
  if (scale >= 1) return 0;
  if (scale >= 0.1) return 1;
  if (scale >= 0.01) return 2;
  return scale >= 0.001 ? 3 : 4;
}

function scaled(raw, scale) {
  if (scale === 1) {
    return raw;
  }
  var factor = Math.pow(10, digits(scale));
  return Math.round(raw * scale * factor) / factor;
}

function readValue(reader, register) {
  var raw = reader[register.type]();
  if (register.type === "bool") {
    return raw;
  }
  return raw === MISSING[register.type] ? null : scaled(raw, register.scale);
}

function time(seconds) {
  return new Date(seconds * 1000).toISOString();
}

function decodeMeasurements(reader) {
  var result = { type: "measurements", values: {}, units: {} };
  while (reader.left() > 0) {
    var number = reader.u16();
    var register = REGISTERS[number];
    if (!register) {
      throw new Error("unknown register 0x" + number.toString(16) + " at byte " + (reader.at - 2));
    }
    result.values[register.name] = readValue(reader, register);
    if (register.unit) {
      result.units[register.name] = register.unit;
    }
  }
  return summarize(result);
}

function summarize(result) {
  var values = result.values;
  var phases = ["l1", "l2", "l3"];
  var power = 0;
  var known = 0;
  var highest = null;
  phases.forEach(function (phase) {
    var active = values["active_power_" + phase];
    if (typeof active === "number") {
      power += active;
      known += 1;
    }
    var voltage = values["voltage_" + phase];
    if (typeof voltage === "number" && (highest === null || voltage > highest)) {
      highest = voltage;
    }
  });
  if (known === 3 && values.active_power_total === undefined) {
    values.active_power_total = Math.round(power * 10) / 10;
  }
  if (highest !== null) {
    result.supply = highest > 253 ? "high" : highest < 207 ? "low" : "normal";
  }
  return result;
}

function decodeHistory(reader) {
  var start = reader.u32();
  var interval = reader.u16();
  var count = reader.u8();
  var columns = [];
  for (var i = 0; i < count; i++) {
    var register = REGISTERS[reader.u16()];
    if (!register || register.type === "bool") {
      throw new Error("history of a register that has none");
    }
    columns.push({ register: register, raw: reader[register.type]() });
  }
  var records = [];
  var at = start;
  while (true) {
    var record = { time: time(at) };
    columns.forEach(function (column) {
      record[column.register.name] = scaled(column.raw, column.register.scale);
    });
    records.push(record);
    if (reader.left() === 0) {
      return { type: "history", interval: interval, records: records };
    }
    columns.forEach(function (column) {
      column.raw += reader.difference();
    });
    at += interval;
  }
}

function decodeAlarms(reader) {
  var alarms = [];
  var worst = "info";
  var order = ["info", "minor", "major", "critical"];
  while (reader.left() > 0) {
    var number = reader.u8();
    var state = reader.u8();
    var known = ALARMS[number] || { text: "alarm " + number, where: "unknown", severity: "major" };
    var alarm = { number: number, text: known.text, where: known.where, severity: known.severity };
    alarm.active = (state & 0x01) !== 0;
    alarm.acknowledged = (state & 0x02) !== 0;
    if (state & 0x04) {
      alarm.count = reader.u16();
    }
    if (state & 0x08) {
      alarm.since = time(reader.u32());
    }
    if (alarm.active && order.indexOf(alarm.severity) > order.indexOf(worst)) {
      worst = alarm.severity;
    }
    alarms.push(alarm);
  }
  return { type: "alarms", worst: worst, alarms: alarms };
}

function readDetail(reader, kind) {
  switch (kind) {
    case "duration":
    case "seconds":
      return { seconds: reader.u32() };
    case "setting":
      var setting = SETTINGS[reader.u8()];
      return { setting: setting ? setting.name : "unknown", by: reader.u8() ? "downlink" : "panel" };
    case "version":
      return { version: reader.version() };
    case "reason":
      return { reason: REFUSALS[reader.u8()] || "unknown" };
    case "count":
      return { count: reader.u16() };
    case "relay":
      var relay = reader.u8();
      return { relay: relay & 0x0f, closed: (relay & 0x80) !== 0 };
    case "tariff":
      return { tariff: reader.u8() };
    default:
      return {};
  }
}

function decodeEvents(reader) {
  var events = [];
  while (reader.left() > 0) {
    var entry = { index: reader.u16(), time: time(reader.u32()) };
    var number = reader.u8();
    var event = EVENTS[number];
    if (!event) {
      throw new Error("unknown event " + number + " in entry " + entry.index);
    }
    entry.text = event.text;
    var detail = readDetail(reader, event.detail);
    Object.keys(detail).forEach(function (name) {
      entry[name] = detail[name];
    });
    events.push(entry);
  }
  return { type: "events", events: events };
}

function decodeSettings(reader) {
  var result = { type: "settings", settings: {}, changed: [], invalid: [] };
  while (reader.left() > 0) {
    var number = reader.u8();
    var setting = SETTINGS[number];
    if (!setting) {
      throw new Error("unknown setting " + number);
    }
    var value = reader[setting.type]();
    result.settings[setting.name] = setting.name === "connection" ? CONNECTIONS[value] || "unknown" : value;
    if (Number(value) !== setting.fallback) {
      result.changed.push(setting.name);
    }
    if (Number(value) < setting.min || Number(value) > setting.max) {
      result.invalid.push(setting.name);
    }
  }
  return result;
}

function decodeInformation(reader) {
  return {
    type: "information",
    serial_number: reader.hex(6),
    hardware: reader.version(),
    firmware: reader.version(),
    bootloader: reader.version(),
    calibrated: time(reader.u32()),
    uptime: reader.u32(),
    restarts: reader.u16(),
    memory_free: reader.u16(),
    features: readFeatures(reader.u16())
  };
}

function readFeatures(bits) {
  var names = ["harmonics", "tariffs", "history", "leakage", "relays", "pulses", "temperatures", "analog", "display", "backup"];
  return names.filter(function (name, bit) {
    return bits & (1 << bit);
  });
}

function decodeHarmonics(reader) {
  var register = REGISTERS[reader.u16()] || { name: "unknown" };
  var first = reader.u8();
  var step = reader.u8();
  var harmonics = [];
  var squares = 0;
  while (reader.left() > 0) {
    var percent = reader.u8() / 10;
    squares += percent * percent;
    harmonics.push({ order: first + step * harmonics.length, percent: percent });
  }
  return { type: "harmonics", quantity: register.name, distortion: Math.round(Math.sqrt(squares) * 100) / 100, harmonics: harmonics };
}

function decodeTariffs(reader) {
  var result = { type: "tariffs", active: reader.u8(), season: reader.u8(), day: DAY_KINDS[reader.u8()] || "unknown", counters: [], switches: [] };
  var tariffs = reader.u8();
  for (var i = 1; i <= tariffs; i++) {
    result.counters.push({ tariff: i, energy_import: reader.u32() / 100, energy_export: reader.u32() / 100 });
  }
  while (reader.left() > 0) {
    var quarter = reader.u8();
    var hour = Math.floor(quarter / 4);
    var minute = (quarter % 4) * 15;
    result.switches.push({ at: (hour < 10 ? "0" : "") + hour + ":" + (minute || "00"), tariff: reader.u8() });
  }
  return result;
}

var DECODERS = {
  1: decodeMeasurements,
  2: decodeHistory,
  3: decodeAlarms,
  4: decodeEvents,
  5: decodeSettings,
  6: decodeInformation,
  7: decodeHarmonics,
  8: decodeTariffs
};

function Decoder(bytes, port) {
  var decode = DECODERS[port];
  if (!decode) {
    throw new Error("no message has port " + port);
  }
  if (bytes.length < 2) {
    throw new Error("a message has at least two bytes");
  }
  var end = bytes.length - 1;
  if (checksum(bytes, end) !== bytes[end]) {
    throw new Error("wrong checksum");
  }
  return decode(new Reader(bytes, end));
}

// Downlinks: what the meter understands, as an object with one member for each command.

function Writer() {
  this.bytes = [];
}

Writer.prototype.u8 = function (value) {
  this.bytes.push(value & 0xff);
  return this;
};

Writer.prototype.bool = function (value) {
  return this.u8(value ? 1 : 0);
};

Writer.prototype.u16 = function (value) {
  return this.u8(value >> 8).u8(value);
};

Writer.prototype.i16 = Writer.prototype.u16;

Writer.prototype.u32 = function (value) {
  return this.u16(Math.floor(value / 0x10000)).u16(value % 0x10000);
};

function checkInteger(name, value, min, max) {
  if (typeof value !== "number" || Math.floor(value) !== value || value < min || value > max) {
    throw new Error(name + " must be a whole number from " + min + " to " + max + ", not " + value);
  }
  return value;
}

function settingNamed(name) {
  for (var number in SETTINGS) {
    if (SETTINGS[number].name === name) {
      return Number(number);
    }
  }
  throw new Error("unknown setting " + name);
}

function registerNamed(name) {
  for (var number in REGISTERS) {
    if (REGISTERS[number].name === name) {
      return Number(number);
    }
  }
  throw new Error("unknown register " + name);
}

var ENCODERS = {
  // { set: { report_interval: 600, language: 2 } }
  set: function (writer, settings) {
    Object.keys(settings).forEach(function (name) {
      var number = settingNamed(name);
      var setting = SETTINGS[number];
      var value = settings[name];
      if (setting.name === "connection" && typeof value === "string") {
        value = CONNECTIONS.indexOf(value);
      }
      if (setting.type !== "bool") {
        checkInteger(name, value, setting.min, setting.max);
      }
      writer.u8(0x01).u8(number);
      writer[setting.type](value);
    });
  },
  // { get: ["report_interval"] }
  get: function (writer, names) {
    names.forEach(function (name) {
      writer.u8(0x02).u8(settingNamed(name));
    });
  },
  // { read: ["voltage_l1", "voltage_l2"] }
  read: function (writer, names) {
    writer.u8(0x03).u8(checkInteger("the number of registers", names.length, 1, 20));
    names.forEach(function (name) {
      writer.u16(registerNamed(name));
    });
  },
  // { relay: { number: 1, closed: true, seconds: 60 } }
  relay: function (writer, relay) {
    var number = checkInteger("relay.number", relay.number, 1, 2);
    writer.u8(0x04).u8(number | (relay.closed ? 0x80 : 0));
    writer.u16(checkInteger("relay.seconds", relay.seconds || 0, 0, 65535));
  },
  // { clock: "2026-11-21T12:00:00Z" }
  clock: function (writer, text) {
    var seconds = Date.parse(text) / 1000;
    if (isNaN(seconds)) {
      throw new Error("clock must be a time such as 2026-11-21T12:00:00Z");
    }
    writer.u8(0x05).u32(Math.floor(seconds));
  },
  // { history: { from: "2026-11-21T00:00:00Z", hours: 6 } }
  history: function (writer, range) {
    writer.u8(0x06).u32(Math.floor(Date.parse(range.from) / 1000));
    writer.u8(checkInteger("history.hours", range.hours, 1, 168));
  },
  // { reset: "demand" }
  reset: function (writer, what) {
    var codes = { demand: 1, counters: 2, alarms: 3, events: 4, device: 0xff };
    if (!codes.hasOwnProperty(what)) {
      throw new Error("reset must be one of " + Object.keys(codes).join(", "));
    }
    writer.u8(0x07).u8(codes[what]);
  },
  // { acknowledge: [35, 36] }
  acknowledge: function (writer, numbers) {
    numbers.forEach(function (number) {
      writer.u8(0x08).u8(checkInteger("an alarm number", number, 1, 255));
    });
  }
};

function Encoder(object, port) {
  var writer = new Writer();
  Object.keys(object).forEach(function (command) {
    var encode = ENCODERS[command];
    if (!encode) {
      throw new Error("unknown command " + command + ", known are " + Object.keys(ENCODERS).join(", "));
    }
    encode(writer, object[command]);
  });
  if (writer.bytes.length === 0 || writer.bytes.length > 50) {
    throw new Error("a downlink has 1 to 50 bytes, these commands need " + writer.bytes.length);
  }
  return writer.u8(checksum(writer.bytes, writer.bytes.length)).bytes;
}
