# The views of CouchDB that ArchiveBot's bot asks for, answered from the files of its checkout.

require 'json'
require 'ostruct'

module Analysand
  class Database
    def initialize(_uri); end

    def view!(name, parameters, _credentials)
      rows = name == 'user_agents/by_alias' ? agents(parameters[:key]) : patterns(parameters[:keys])
      OpenStruct.new(rows: rows)
    end

    private

    def patterns(names)
      found = read('ignore_patterns').select { |set| names.include?(set['name']) }
      found.flat_map { |set| set['patterns'].map { |pattern| { 'key' => set['name'], 'value' => pattern } } }
    end

    def agents(name)
      found = read('user_agents').flat_map { |file| file['agents'] }.select { |agent| agent['aliases'].include?(name) }
      found.map { |agent| { 'key' => name, 'value' => agent['name'] } }
    end

    def read(folder)
      Dir[File.join(ENV.fetch('CHECKOUT'), 'db', folder, '*.json')].sort.map { |path| JSON.parse(File.read(path)) }
    end
  end
end
