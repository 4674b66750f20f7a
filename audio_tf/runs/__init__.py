"""What a run is made of: settings, callbacks, provenance, devices."""
