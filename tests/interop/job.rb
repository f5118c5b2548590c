# A client of a job in Redis, which is ArchiveBot's own class Job: ruby job.rb CHECKOUT REDIS IDENT VERB [ARGUMENT...]
# Prints what it has of the job as JSON, after the verb was carried out.

require 'json'
require 'redis'

checkout, url, ident, verb, *given = ARGV
require File.join(checkout, 'lib/job')
require File.join(checkout, 'lib/pipeline_collection')
require File.join(checkout, 'lib/pipeline_info')
require File.join(checkout, 'bot/job_status_generation')
Job.send(:include, JobStatusGeneration)

redis = Redis.new(url: url)
job = Job.from_ident(ident, redis) or abort "no job #{ident}"

case verb
when 'delay' then job.set_delay(*given.map(&:to_i))
when 'concurrency' then job.set_concurrency(given.first.to_i)
when 'ignore' then job.add_ignore_patterns(given)
when 'unignore' then job.remove_ignore_pattern(given)
when 'reports' then job.toggle_ignores(given.first == 'on')
when 'note' then job.add_note(given.first)
when 'abort' then job.abort
when 'fail' then job.fail
when 'expire' then job.expire
when 'yahoo' then job.yahoo
when 'show' then nil
else abort "no verb #{verb}"
end

job.reload
puts JSON.generate(
  job.as_json.merge(
    'computed_ident' => job.ident,
    'status' => job.to_status.first,
    'total' => job.total_responses,
    'recent' => job.most_recent_log_entries(3),
    'working' => Job.working_job_idents(redis),
    'pipeline' => PipelineInfo.new(redis).from_pipeline_id(job.pipeline_id)&.nickname,
    'pipelines' => PipelineCollection.new(redis).map { |one| one['id'] }
  )
)
