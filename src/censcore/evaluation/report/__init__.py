"""What people read: lines of tables, verdicts, pictures, pages, exports."""
