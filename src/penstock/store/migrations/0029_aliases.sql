-- Names that an organization gives to models.

ALTER TABLE orgs ADD COLUMN model_aliases TEXT;  -- what calls ask for, and the model that they get, as JSON; null: none
