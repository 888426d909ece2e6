"""The report: one HTML file about one or several runs, which needs nothing beside itself and asks no network."""
