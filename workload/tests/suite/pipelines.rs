//! pipelines
