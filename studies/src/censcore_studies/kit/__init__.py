"""What all studies share: the store of finished results, tables, figures and pages."""
